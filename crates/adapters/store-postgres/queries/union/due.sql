SELECT s.tenant_id, s.event_id
FROM scheduled_events AS s
JOIN log_heads AS h ON h.tenant_id = s.tenant_id AND h.state = 'active'
WHERE s.state = 'waiting' AND s.available_at <= $1
ORDER BY s.available_at, s.event_id
LIMIT $2
