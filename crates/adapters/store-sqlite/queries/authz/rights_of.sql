SELECT resource, permission FROM grants WHERE tenant_id = ?1 AND principal_id = ?2 ORDER BY resource, permission
