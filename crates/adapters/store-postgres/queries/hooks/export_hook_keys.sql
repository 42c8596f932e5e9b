SELECT tenant_id, hook_id, key_id, secret, algorithm, public_key, created_at, expires_at
FROM hook_keys
WHERE (tenant_id, hook_id, key_id) > ($1, $2, $3)
ORDER BY tenant_id, hook_id, key_id
LIMIT $4
