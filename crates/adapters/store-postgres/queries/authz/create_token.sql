INSERT INTO tokens (tenant_id, token_id, principal_id, hash, prefix, scopes, created_at, expires_at, last_used_at, revoked_at)
SELECT tenant_id, $2, principal_id, $4, $5, $6, $7, $8, $9, $10 FROM principals WHERE tenant_id = $1 AND principal_id = $3
ON CONFLICT DO NOTHING
