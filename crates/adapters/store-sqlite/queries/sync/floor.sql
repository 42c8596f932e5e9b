SELECT floor FROM log_heads WHERE tenant_number = ?1
