SELECT pg_advisory_xact_lock(1684631921, hashtext($1 || ' ' || $2))
