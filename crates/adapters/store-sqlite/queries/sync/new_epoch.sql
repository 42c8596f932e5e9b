UPDATE log_heads SET epoch = ?2 WHERE tenant_number = ?1
