DELETE FROM hook_keys
WHERE (tenant_id, hook_id, key_id) IN (
    SELECT tenant_id, hook_id, key_id FROM hook_keys WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
)
