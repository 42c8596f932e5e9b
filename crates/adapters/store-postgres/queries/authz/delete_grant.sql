DELETE FROM grants WHERE tenant_id = $1 AND grant_id = $2 RETURNING grant_id, principal_id, resource, permission, created_at
