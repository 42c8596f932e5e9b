SELECT tenant_id FROM hooks WHERE hook_id = ?1
