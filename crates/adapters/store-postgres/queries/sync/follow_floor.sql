UPDATE log_heads SET sweep_floor = floor, sweep_raised_at = floor_raised_at WHERE tenant_number = $1
RETURNING tenant_number, head, floor, sweep_floor, sweep_raised_at, swept
