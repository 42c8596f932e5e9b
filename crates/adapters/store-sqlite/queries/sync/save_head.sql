UPDATE log_heads SET head = ?2 WHERE tenant_number = ?1
