SELECT number, event_id, publisher, event, staged_at, state, failure
FROM log_staged
WHERE tenant_id = $1 AND state = 'waiting'
ORDER BY number
LIMIT $2
