DELETE FROM hook_deliveries WHERE tenant_id = $1 AND hook_id = $2 AND webhook_id = ANY ($3)
