SELECT tenant_number, tenant_id, head, floor FROM log_heads ORDER BY tenant_number
