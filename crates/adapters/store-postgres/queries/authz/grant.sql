SELECT grant_id, principal_id, resource, permission, created_at FROM grants WHERE tenant_id = $1 AND grant_id = $2
