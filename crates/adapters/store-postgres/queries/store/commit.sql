-- In a transaction that failed the first statement is refused, and the second, which would quietly roll back, is not run.
SELECT 1;
COMMIT
