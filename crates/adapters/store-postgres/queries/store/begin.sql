-- The transaction's number tells afterwards what became of it, should the answer to its commit be lost.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SELECT pg_current_xact_id()::text
