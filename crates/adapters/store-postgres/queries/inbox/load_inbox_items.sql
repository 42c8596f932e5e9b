-- Each queue learns a lower bound of its items' claim keys.
WITH input AS MATERIALIZED (
    SELECT * FROM unnest(
        $1::BIGINT[], $2::BIGINT[], $3::UUID[], $4::BOOLEAN[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[], $9::BIGINT[],
        $10::TEXT[], $11::TEXT[], $12::TEXT[], $13::TEXT[], $14::TEXT[], $15::BIGINT[], $16::TEXT[], $17::BIGINT[], $18::BIGINT[],
        $19::BIGINT[], $20::BIGINT[], $21::BIGINT[], $22::BIGINT[], $23::BIGINT[], $24::BIGINT[], $25::BIGINT[], $26::BYTEA[],
        $27::TEXT[], $28::BIGINT[], $29::BIGINT[], $30::BIGINT[], $31::BIGINT[], $32::TEXT[], $33::BIGINT[], $34::BIGINT[]
    ) AS i (
        tenant_number, recipient_number, event_id, is_current, state, ring_seq, claim_key, due_at, inbox_seq, type, kind, source,
        summary, queue, priority, deduplication_key, available_at, expires_at, max_attempts, created_at, envelope_bytes, dead_letter,
        delivery_attempts, counted_attempts, generation, lease_hash, history, lease_until, attempt_deadline, claimed_at, heartbeat_at,
        session_id, backoff, next_retry_at
    )
), opened AS (
    INSERT INTO inbox_queues (tenant_number, recipient_number, queue, claim_floor)
    SELECT tenant_number, tenant_number << 32 | recipient_number, queue, min(claim_key)
    FROM input
    GROUP BY tenant_number, recipient_number, queue
    ON CONFLICT (tenant_number, recipient_number, queue) DO UPDATE SET claim_floor = least(inbox_queues.claim_floor, excluded.claim_floor)
)
INSERT INTO inbox_items (
    tenant_number, recipient_number, event_id, is_current, state, ring_seq, claim_key, due_at, inbox_seq, type, kind, source, summary,
    queue, priority, deduplication_key, available_at, expires_at, max_attempts, created_at, envelope_bytes, dead_letter,
    delivery_attempts, counted_attempts, generation, lease_hash, history, lease_until, attempt_deadline, claimed_at, heartbeat_at,
    session_id, backoff, next_retry_at
)
SELECT
    tenant_number, tenant_number << 32 | recipient_number, event_id, is_current, state, ring_seq, claim_key, due_at, inbox_seq, type,
    kind, source, summary, queue, priority, deduplication_key, available_at, expires_at, max_attempts, created_at, envelope_bytes,
    dead_letter, delivery_attempts, counted_attempts, generation, lease_hash, history, lease_until, attempt_deadline, claimed_at,
    heartbeat_at, session_id, backoff, next_retry_at
FROM input
