SELECT 1 FROM log_heads WHERE tenant_number = ANY ($1) ORDER BY tenant_number FOR UPDATE
