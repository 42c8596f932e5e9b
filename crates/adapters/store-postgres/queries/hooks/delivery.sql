SELECT hook_id, webhook_id, reason, cause, event_id, queue, attempts, next_at, created_at
FROM hook_deliveries
WHERE tenant_id = $1 AND hook_id = $2 AND webhook_id = $3
