INSERT INTO grants (tenant_id, grant_id, principal_id, resource, permission, created_at)
SELECT tenant_id, $2, principal_id, $4, $5, $6 FROM principals WHERE tenant_id = $1 AND principal_id = $3
ON CONFLICT DO NOTHING
