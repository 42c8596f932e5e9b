UPDATE log_heads SET state = $2 WHERE tenant_id = $1
