INSERT INTO scheduled_events (tenant_id, event_id, available_at, publisher, state, type, channel, audience, origin, created_at, key,
    body_hash, key_expires_at, body, work)
VALUES ($1, $2, $3, $4, 'waiting', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT DO NOTHING
