SELECT lease_key FROM inbox_keys WHERE tenant_number = $1
