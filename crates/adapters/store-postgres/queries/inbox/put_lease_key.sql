INSERT INTO inbox_keys (tenant_number, lease_key) VALUES ($1, $2) ON CONFLICT (tenant_number) DO NOTHING
