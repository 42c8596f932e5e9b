SELECT tenant_id, hook_id, webhook_id, reason, cause, event_id, queue, attempts, next_at, created_at
FROM hook_deliveries
WHERE (tenant_id, hook_id, webhook_id) > ($1, $2, $3)
ORDER BY tenant_id, hook_id, webhook_id
LIMIT $4
