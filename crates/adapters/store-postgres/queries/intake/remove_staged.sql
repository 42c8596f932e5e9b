DELETE FROM log_staged WHERE tenant_id = $1 AND number = ANY ($2)
