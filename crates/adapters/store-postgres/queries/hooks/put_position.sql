INSERT INTO hook_positions (tenant_id, epoch, position)
VALUES ($1, $2, $3)
ON CONFLICT (tenant_id) DO UPDATE SET epoch = excluded.epoch, position = excluded.position
