INSERT INTO tenants (tenant_id, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING
