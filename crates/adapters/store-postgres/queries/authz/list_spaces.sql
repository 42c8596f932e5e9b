SELECT space_id, created_at FROM spaces WHERE tenant_id = $1 AND space_id > $2 ORDER BY space_id LIMIT $3
