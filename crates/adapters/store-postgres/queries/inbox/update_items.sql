UPDATE inbox_items AS i
SET state = u.state, dead_letter = u.dead_letter, is_current = u.is_current, ring_seq = u.ring_seq, claim_key = u.claim_key,
    delivery_attempts = u.delivery_attempts, counted_attempts = u.counted_attempts, generation = u.generation, lease_hash = u.lease_hash,
    history = u.history, lease_until = u.lease_until, attempt_deadline = u.attempt_deadline, claimed_at = u.claimed_at,
    heartbeat_at = u.heartbeat_at, session_id = u.session_id, backoff = u.backoff, next_retry_at = u.next_retry_at, due_at = u.due_at
FROM UNNEST (
    $3::UUID[], $4::SMALLINT[], $5::SMALLINT[], $6::BOOLEAN[], $7::BIGINT[], $8::BIGINT[], $9::BIGINT[], $10::BIGINT[],
    $11::BIGINT[], $12::BYTEA[], $13::TEXT[], $14::BIGINT[], $15::BIGINT[], $16::BIGINT[], $17::BIGINT[], $18::TEXT[], $19::BIGINT[],
    $20::BIGINT[], $21::BIGINT[]
) AS u (
    event_id, state, dead_letter, is_current, ring_seq, claim_key, delivery_attempts, counted_attempts,
    generation, lease_hash, history, lease_until, attempt_deadline, claimed_at, heartbeat_at, session_id, backoff, next_retry_at, due_at
)
WHERE i.tenant_number = $1 AND i.recipient_number = $2 AND i.event_id = ANY ($3) AND i.event_id = u.event_id
