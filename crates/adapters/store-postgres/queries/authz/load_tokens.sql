INSERT INTO tokens (
    tenant_id, token_id, principal_id, hash, prefix, scopes, created_at, expires_at, last_used_at, revoked_at
)
SELECT
    tenant_id, token_id, principal_id, hash, prefix, scopes, created_at, expires_at, last_used_at, revoked_at
FROM unnest(
        $1::TEXT[], $2::UUID[], $3::TEXT[], $4::BYTEA[], $5::TEXT[], $6::TEXT[], $7::BIGINT[], $8::BIGINT[], $9::BIGINT[], $10::BIGINT[]
    ) AS i (
        tenant_id, token_id, principal_id, hash, prefix, scopes, created_at, expires_at, last_used_at, revoked_at
    )
