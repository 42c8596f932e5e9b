WITH gone AS (
    DELETE FROM inbox_items AS i
    USING UNNEST (
        $3::UUID[], $4::SMALLINT[], $5::SMALLINT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[], $9::BIGINT[],
        $10::BIGINT[], $11::BYTEA[], $12::TEXT[], $13::BIGINT[]
    ) AS u (
        event_id, state, dead_letter, ring_seq, claim_key, delivery_attempts, counted_attempts, generation,
        lease_hash, history, ended_at
    )
    WHERE i.tenant_number = $1 AND i.recipient_number = $2 AND i.event_id = ANY ($3) AND i.event_id = u.event_id
    RETURNING i.tenant_number, i.recipient_number, i.event_id, i.inbox_seq, i.type, i.kind, i.source, i.summary, i.queue, i.priority, i.deduplication_key, i.available_at, i.expires_at,
        i.max_attempts, i.created_at, i.envelope_bytes, u.state, u.dead_letter, u.ring_seq, u.claim_key, u.delivery_attempts, u.counted_attempts,
        u.generation, u.lease_hash, u.history, u.ended_at
)
INSERT INTO inbox_ended (
    tenant_number, recipient_number, event_id, inbox_seq, type, kind, source, summary, queue, priority, deduplication_key, available_at, expires_at,
    max_attempts, created_at, envelope_bytes, state, dead_letter, ring_seq, claim_key, delivery_attempts, counted_attempts, generation, lease_hash,
    history, ended_at
)
SELECT * FROM gone
