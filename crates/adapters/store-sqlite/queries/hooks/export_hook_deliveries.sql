SELECT h.tenant_id, o.hook_id, o.webhook_id, o.reason, o.cause, o.event_id, o.queue, o.attempts, o.next_at, o.created_at
FROM hook_deliveries AS o
LEFT JOIN hooks AS h ON h.hook_id = o.hook_id
WHERE (o.hook_id, o.webhook_id) > (?1, ?2)
ORDER BY o.hook_id, o.webhook_id
LIMIT ?3
