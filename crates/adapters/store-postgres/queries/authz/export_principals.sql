SELECT tenant_id, principal_id, kind, role, display_name, enabled, created_at
FROM principals
WHERE (tenant_id, principal_id) > ($1, $2)
ORDER BY tenant_id, principal_id
LIMIT $3
