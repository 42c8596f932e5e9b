SELECT tenant_number, floor, sweep_floor, sweep_raised_at FROM log_heads WHERE tenant_id = ?1
