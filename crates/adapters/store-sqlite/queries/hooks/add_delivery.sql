INSERT INTO hook_deliveries (hook_id, webhook_id, reason, cause, event_id, queue, attempts, next_at, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (hook_id, webhook_id) DO NOTHING
