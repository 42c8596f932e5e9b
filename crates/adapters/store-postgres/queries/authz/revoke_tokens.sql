UPDATE tokens SET revoked_at = $3
WHERE tenant_id = $1 AND principal_id = $2 AND revoked_at IS NULL
RETURNING token_id
