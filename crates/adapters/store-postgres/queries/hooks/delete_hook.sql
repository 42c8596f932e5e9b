DELETE FROM hooks WHERE tenant_id = $1 AND hook_id = $2
