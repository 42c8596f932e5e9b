SELECT grant_id, principal_id, resource, permission, created_at
FROM grants
WHERE tenant_id = $1 AND principal_id = $2 AND resource = $3 AND permission = $4
