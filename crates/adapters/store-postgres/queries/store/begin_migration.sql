-- No timeout of a request bounds a migration.
BEGIN;
SET LOCAL statement_timeout = 0;
SET LOCAL lock_timeout = 0;
SET LOCAL search_path = doorstep;
SELECT pg_advisory_xact_lock(hashtextextended('doorstep.migrations', 0))
