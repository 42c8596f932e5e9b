SELECT a.hook_id, a.number, a.webhook_id, a.reason, a.event_id, a.attempt, a.at, a.latency, a.status, a.class
FROM hooks AS h
JOIN hook_attempts AS a ON a.tenant_id = h.tenant_id AND a.hook_id = h.hook_id
WHERE h.hook_id = $1
ORDER BY a.number DESC
LIMIT $2
