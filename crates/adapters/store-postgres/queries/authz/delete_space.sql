DELETE FROM spaces WHERE tenant_id = $1 AND space_id = $2
