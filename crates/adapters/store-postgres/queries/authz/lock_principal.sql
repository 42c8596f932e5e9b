-- Whoever adds to what a principal may have only so much of waits here for the others.
SELECT true FROM principals WHERE tenant_id = $1 AND principal_id = $2 FOR NO KEY UPDATE
