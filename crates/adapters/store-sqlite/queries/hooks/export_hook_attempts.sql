SELECT h.tenant_id, o.hook_id, o.number, o.webhook_id, o.reason, o.event_id, o.attempt, o.at, o.latency, o.status, o.class
FROM hook_attempts AS o
LEFT JOIN hooks AS h ON h.hook_id = o.hook_id
WHERE (o.hook_id, o.number) > (?1, ?2)
ORDER BY o.hook_id, o.number
LIMIT ?3
