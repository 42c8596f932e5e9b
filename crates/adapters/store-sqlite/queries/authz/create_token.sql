INSERT INTO tokens (tenant_id, token_id, principal_id, hash, prefix, scopes, created_at, expires_at, last_used_at, revoked_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
