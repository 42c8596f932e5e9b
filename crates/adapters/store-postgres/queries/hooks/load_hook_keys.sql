INSERT INTO hook_keys (
    tenant_id, hook_id, key_id, secret, algorithm, public_key, created_at, expires_at
)
SELECT
    tenant_id, hook_id, key_id, secret, algorithm, public_key, created_at, expires_at
FROM unnest(
        $1::TEXT[], $2::UUID[], $3::TEXT[], $4::BYTEA[], $5::TEXT[], $6::BYTEA[], $7::BIGINT[], $8::BIGINT[]
    ) AS i (
        tenant_id, hook_id, key_id, secret, algorithm, public_key, created_at, expires_at
    )
