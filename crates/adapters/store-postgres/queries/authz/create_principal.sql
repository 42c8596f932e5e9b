INSERT INTO principals (tenant_id, principal_id, kind, role, display_name, enabled, created_at)
SELECT tenant_id, $2, $3, $4, $5, $6, $7 FROM tenants WHERE tenant_id = $1
ON CONFLICT DO NOTHING
