UPDATE log_heads SET swept = $2 WHERE tenant_number = $1
