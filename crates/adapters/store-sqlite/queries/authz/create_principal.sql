INSERT INTO principals (tenant_id, principal_id, kind, role, display_name, enabled, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
