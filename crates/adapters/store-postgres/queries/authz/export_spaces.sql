SELECT tenant_id, space_id, created_at
FROM spaces
WHERE (tenant_id, space_id) > ($1, $2)
ORDER BY tenant_id, space_id
LIMIT $3
