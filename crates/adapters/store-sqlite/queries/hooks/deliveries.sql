SELECT hook_id, webhook_id, reason, cause, event_id, queue, attempts, next_at, created_at
FROM hook_deliveries
WHERE hook_id = ?1 AND next_at <= ?2
ORDER BY next_at, cause, webhook_id
