SELECT tenant_id, event_id, available_at, publisher, state, failure, type, channel, audience, origin, created_at, key, body_hash,
    key_expires_at, body, work
FROM scheduled_events
WHERE (tenant_id, event_id) > (?1, ?2)
ORDER BY tenant_id, event_id
LIMIT ?3
