SELECT tenant_id, grant_id, principal_id, resource, permission, created_at
FROM grants
WHERE (tenant_id, grant_id) > ($1, $2)
ORDER BY tenant_id, grant_id
LIMIT $3
