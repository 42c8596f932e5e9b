SELECT hook_id, number, webhook_id, reason, event_id, attempt, at, latency, status, class
FROM hook_attempts
WHERE hook_id = ?1
ORDER BY number DESC
