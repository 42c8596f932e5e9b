SELECT tenant_number, lease_key
FROM inbox_keys
WHERE tenant_number > $1
ORDER BY tenant_number
LIMIT $2
