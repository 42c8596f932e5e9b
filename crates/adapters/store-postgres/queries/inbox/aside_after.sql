SELECT recipient_number, event_id, inbox_seq, type, kind, source, summary, queue, priority, deduplication_key, available_at, expires_at, max_attempts,
    created_at, envelope_bytes, ring_seq, state, dead_letter, claim_key, delivery_attempts, counted_attempts, generation, lease_hash, history,
    lease_until, attempt_deadline, claimed_at, heartbeat_at, session_id, backoff, next_retry_at
FROM inbox_items
WHERE tenant_number = $1 AND recipient_number = $2 AND state = $3 AND NOT is_current AND event_id > $4
ORDER BY event_id
LIMIT $5
