UPDATE hook_keys SET secret = $5 WHERE tenant_id = $1 AND hook_id = $2 AND key_id = $3 AND secret = $4
