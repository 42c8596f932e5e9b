INSERT INTO grants (tenant_id, grant_id, principal_id, resource, permission, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
