SELECT tenant_number, head, floor, sweep_floor, sweep_raised_at, swept FROM log_heads WHERE tenant_id = $1
