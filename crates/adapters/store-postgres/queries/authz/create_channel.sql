INSERT INTO channels (tenant_id, space_id, channel_id, created_at)
SELECT tenant_id, space_id, $3, $4 FROM spaces WHERE tenant_id = $1 AND space_id = $2
ON CONFLICT DO NOTHING
