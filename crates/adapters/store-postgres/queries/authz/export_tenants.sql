SELECT tenant_id, created_at
FROM tenants
WHERE tenant_id > $1
ORDER BY tenant_id
LIMIT $2
