SELECT t.tenant_id, h.state, t.token_id, t.principal_id, t.hash, t.prefix, t.scopes, t.created_at, t.expires_at, t.last_used_at,
    t.revoked_at, p.kind, p.role, p.display_name, p.enabled, p.created_at
FROM tokens AS t
JOIN principals AS p ON p.tenant_id = t.tenant_id AND p.principal_id = t.principal_id
JOIN log_heads AS h ON h.tenant_id = t.tenant_id
WHERE t.hash = $1
