DELETE FROM idempotency_keys
WHERE (tenant_id, principal_id, key) IN (
    SELECT tenant_id, principal_id, key FROM idempotency_keys
    WHERE created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED
)
