DELETE FROM scheduled_events
WHERE tenant_id = $1 AND event_id = $2
RETURNING event_id, available_at, publisher, state, failure, type, channel, audience, origin, created_at, key, body_hash, key_expires_at, body,
    work
