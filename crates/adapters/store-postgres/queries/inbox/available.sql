-- The hot path: one queue. What another transaction is taking is passed by.
SELECT recipient_number, event_id, inbox_seq, type, kind, source, summary, queue, priority, deduplication_key, available_at, expires_at, max_attempts,
    created_at, envelope_bytes, ring_seq, state, dead_letter, claim_key, delivery_attempts, counted_attempts, generation, lease_hash, history,
    lease_until, attempt_deadline, claimed_at, heartbeat_at, session_id, backoff, next_retry_at
FROM inbox_items
WHERE tenant_number = $1 AND recipient_number = $2 AND queue = $3 AND state = 0
    AND claim_key >= (SELECT q.claim_floor FROM inbox_queues AS q WHERE q.tenant_number = $1 AND q.recipient_number = $2 AND q.queue = $3)
ORDER BY claim_key, event_id
LIMIT $4
FOR UPDATE SKIP LOCKED
