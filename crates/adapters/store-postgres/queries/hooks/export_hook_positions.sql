SELECT tenant_id, epoch, position
FROM hook_positions
WHERE tenant_id > $1
ORDER BY tenant_id
LIMIT $2
