INSERT INTO channels (tenant_id, space_id, channel_id, created_at) VALUES (?1, ?2, ?3, ?4)
