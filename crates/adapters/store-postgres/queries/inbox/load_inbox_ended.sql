INSERT INTO inbox_ended (
    tenant_number, recipient_number, event_id, state, ring_seq, claim_key, inbox_seq, type, kind, source, summary, queue, priority,
    deduplication_key, available_at, expires_at, max_attempts, created_at, envelope_bytes, dead_letter, delivery_attempts,
    counted_attempts, generation, lease_hash, history, ended_at
)
SELECT
    tenant_number, tenant_number << 32 | recipient_number, event_id, state, ring_seq, claim_key, inbox_seq, type, kind, source, summary,
    queue, priority, deduplication_key, available_at, expires_at, max_attempts, created_at, envelope_bytes, dead_letter,
    delivery_attempts, counted_attempts, generation, lease_hash, history, ended_at
FROM unnest(
        $1::BIGINT[], $2::BIGINT[], $3::UUID[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::TEXT[], $9::TEXT[],
        $10::TEXT[], $11::TEXT[], $12::TEXT[], $13::BIGINT[], $14::TEXT[], $15::BIGINT[], $16::BIGINT[], $17::BIGINT[], $18::BIGINT[],
        $19::BIGINT[], $20::BIGINT[], $21::BIGINT[], $22::BIGINT[], $23::BIGINT[], $24::BYTEA[], $25::TEXT[], $26::BIGINT[]
    ) AS i (
        tenant_number, recipient_number, event_id, state, ring_seq, claim_key, inbox_seq, type, kind, source, summary, queue, priority,
        deduplication_key, available_at, expires_at, max_attempts, created_at, envelope_bytes, dead_letter, delivery_attempts,
        counted_attempts, generation, lease_hash, history, ended_at
    )
