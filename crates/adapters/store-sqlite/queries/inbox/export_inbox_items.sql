SELECT r.tenant_number, i.recipient_number, i.event_id, i.is_current, i.state, i.ring_seq, i.claim_key, i.due_at, i.inbox_seq, i.type,
    i.kind, i.source, i.summary, i.queue, i.priority, i.deduplication_key, i.available_at, i.expires_at, i.max_attempts, i.created_at,
    i.envelope_bytes, i.dead_letter, i.delivery_attempts, i.counted_attempts, i.generation, i.lease_hash, i.history, i.lease_until,
    i.attempt_deadline, i.claimed_at, i.heartbeat_at, i.session_id, i.backoff, i.next_retry_at
FROM inbox_items AS i
LEFT JOIN inbox_recipients AS r ON r.recipient_number = i.recipient_number
WHERE (i.recipient_number, i.event_id) > (?1, ?2)
ORDER BY i.recipient_number, i.event_id
LIMIT ?3
