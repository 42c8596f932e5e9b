UPDATE principals SET display_name = $3, role = $4, enabled = $5 WHERE tenant_id = $1 AND principal_id = $2
