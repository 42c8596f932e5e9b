SELECT tenant_id, token_id, principal_id, hash, prefix, scopes, created_at, expires_at, last_used_at, revoked_at
FROM tokens
WHERE (tenant_id, token_id) > (?1, ?2)
ORDER BY tenant_id, token_id
LIMIT ?3
