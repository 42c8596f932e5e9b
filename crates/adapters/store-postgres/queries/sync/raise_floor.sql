UPDATE log_heads SET floor = $2, floor_raised_at = $3 WHERE tenant_number = $1 AND floor < $2
