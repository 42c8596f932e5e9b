SELECT hook_id, key_id, tenant_id, secret
FROM hook_keys
WHERE (hook_id, key_id) > ($1, $2) AND secret IS NOT NULL
ORDER BY hook_id, key_id
LIMIT $3
