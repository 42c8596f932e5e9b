INSERT INTO inbox_claims (
    tenant_number, recipient_number, key, request_hash, claims, created_at
)
SELECT
    tenant_number, tenant_number << 32 | recipient_number, key, request_hash, claims, created_at
FROM unnest(
        $1::BIGINT[], $2::BIGINT[], $3::TEXT[], $4::BYTEA[], $5::BYTEA[], $6::BIGINT[]
    ) AS i (
        tenant_number, recipient_number, key, request_hash, claims, created_at
    )
