SELECT number, event_id, publisher, event, staged_at, state, failure
FROM log_staged
WHERE tenant_id = $1 AND number > $2 AND ($3::TEXT IS NULL OR publisher = $3)
ORDER BY number
LIMIT $4
