INSERT INTO hook_keys (tenant_id, hook_id, key_id, secret, algorithm, public_key, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant_id, hook_id, key_id) DO UPDATE
SET secret = excluded.secret, algorithm = excluded.algorithm, public_key = excluded.public_key, created_at = excluded.created_at,
    expires_at = excluded.expires_at
