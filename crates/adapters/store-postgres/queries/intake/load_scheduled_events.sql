INSERT INTO scheduled_events (
    tenant_id, event_id, available_at, publisher, state, failure, type, channel, audience, origin, created_at, key, body_hash,
    key_expires_at, body, work
)
SELECT
    tenant_id, event_id, available_at, publisher, state, failure, type, channel, audience, origin, created_at, key, body_hash,
    key_expires_at, body, work
FROM unnest(
        $1::TEXT[], $2::UUID[], $3::BIGINT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::TEXT[], $8::TEXT[], $9::TEXT[], $10::BIGINT[],
        $11::BIGINT[], $12::TEXT[], $13::BYTEA[], $14::BIGINT[], $15::TEXT[], $16::TEXT[]
    ) AS i (
        tenant_id, event_id, available_at, publisher, state, failure, type, channel, audience, origin, created_at, key, body_hash,
        key_expires_at, body, work
    )
