SELECT s.available_at
FROM scheduled_events AS s
JOIN log_heads AS h ON h.tenant_id = s.tenant_id AND h.state = 'active'
WHERE s.state = 'waiting'
ORDER BY s.available_at, s.event_id
LIMIT 1
