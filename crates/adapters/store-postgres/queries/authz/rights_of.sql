SELECT p.principal_id, p.kind, p.role, p.display_name, p.enabled, p.created_at, g.resource, g.permission
FROM principals AS p
LEFT JOIN grants AS g ON g.tenant_id = p.tenant_id AND g.principal_id = p.principal_id
WHERE p.tenant_id = $1 AND p.principal_id = $2
ORDER BY g.resource, g.permission
