INSERT INTO log_heads (tenant_id, state, head, floor, floor_raised_at, sweep_floor, sweep_raised_at, swept, slot, epoch)
VALUES ($1, $2, 0, 1, $3, 1, $3, 1, 0, $4)
RETURNING tenant_number
