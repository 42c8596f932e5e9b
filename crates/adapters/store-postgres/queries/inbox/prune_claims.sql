DELETE FROM inbox_claims
WHERE ctid = ANY (ARRAY(SELECT c.ctid FROM inbox_claims AS c WHERE c.created_at < $1 ORDER BY c.created_at LIMIT $2 FOR UPDATE SKIP LOCKED))
