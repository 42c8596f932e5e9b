UPDATE tokens SET last_used_at = ?3
WHERE tenant_id = ?1 AND token_id = ?2 AND (last_used_at IS NULL OR last_used_at < ?3)
