INSERT INTO deduplication_keys (
    tenant_number, key, body_hash, event_id, seq, expires_at
)
SELECT
    tenant_number, key, body_hash, event_id, seq, expires_at
FROM unnest(
        $1::BIGINT[], $2::TEXT[], $3::BYTEA[], $4::UUID[], $5::BIGINT[], $6::BIGINT[]
    ) AS i (
        tenant_number, key, body_hash, event_id, seq, expires_at
    )
