DELETE FROM hooks WHERE hook_id = ?1 AND tenant_id = ?2
