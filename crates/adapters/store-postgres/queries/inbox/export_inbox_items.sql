SELECT tenant_number, recipient_number & 4294967295, event_id, is_current, state::BIGINT, ring_seq, claim_key, due_at, inbox_seq, type,
    kind, source, summary, queue, priority::BIGINT, deduplication_key, available_at, expires_at, max_attempts, created_at,
    envelope_bytes, dead_letter::BIGINT, delivery_attempts, counted_attempts, generation, lease_hash, history, lease_until,
    attempt_deadline, claimed_at, heartbeat_at, session_id, backoff, next_retry_at
FROM inbox_items
WHERE (tenant_number, recipient_number, event_id) > ($1::BIGINT, $1::BIGINT << 32 | $2::BIGINT, $3)
ORDER BY tenant_number, recipient_number, event_id
LIMIT $4
