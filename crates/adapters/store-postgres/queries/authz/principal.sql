SELECT principal_id, kind, role, display_name, enabled, created_at FROM principals WHERE tenant_id = $1 AND principal_id = $2
