DELETE FROM principals WHERE tenant_id = $1 AND principal_id = $2
