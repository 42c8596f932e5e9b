UPDATE tokens SET revoked_at = $4
WHERE tenant_id = $1 AND principal_id = $2 AND token_id = $3 AND revoked_at IS NULL
