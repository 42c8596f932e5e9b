INSERT INTO idempotency_keys (
    tenant_id, principal_id, key, request_hash, status, body, created_at
)
SELECT
    tenant_id, principal_id, key, request_hash, status, body, created_at
FROM unnest(
        $1::TEXT[], $2::TEXT[], $3::TEXT[], $4::BYTEA[], $5::BIGINT[], $6::TEXT[], $7::BIGINT[]
    ) AS i (
        tenant_id, principal_id, key, request_hash, status, body, created_at
    )
