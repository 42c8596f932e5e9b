SELECT hook_id, tenant_id FROM hooks WHERE hook_id = ANY ($1) ORDER BY hook_id FOR NO KEY UPDATE
