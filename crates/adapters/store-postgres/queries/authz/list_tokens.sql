SELECT token_id, principal_id, hash, prefix, scopes, created_at, expires_at, last_used_at, revoked_at
FROM tokens
WHERE tenant_id = $1 AND principal_id = $2 AND token_id > $3
ORDER BY token_id
LIMIT $4
