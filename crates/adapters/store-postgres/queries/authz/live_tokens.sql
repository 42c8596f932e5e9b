SELECT count(*) FROM tokens
WHERE tenant_id = $1 AND principal_id = $2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3)
