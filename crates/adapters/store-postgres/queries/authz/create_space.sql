INSERT INTO spaces (tenant_id, space_id, created_at)
SELECT tenant_id, $2, $3 FROM tenants WHERE tenant_id = $1
ON CONFLICT DO NOTHING
