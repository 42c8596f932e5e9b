SELECT tenant_id, hook_id, number, webhook_id, reason, event_id, attempt, at, latency, status::BIGINT, class
FROM hook_attempts
WHERE (tenant_id, hook_id, number) > ($1, $2, $3)
ORDER BY tenant_id, hook_id, number
LIMIT $4
