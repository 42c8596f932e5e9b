SELECT event_id, available_at, publisher, state, failure, type, channel, audience, origin, created_at, key, body_hash, key_expires_at, body,
    work
FROM scheduled_events
WHERE tenant_id = $1 AND (available_at, event_id) > ($2, $3) AND ($4::text IS NULL OR publisher = $4)
ORDER BY available_at, event_id
LIMIT $5
