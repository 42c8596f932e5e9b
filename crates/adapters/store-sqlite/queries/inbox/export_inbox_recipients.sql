SELECT tenant_number, recipient_number, agent_id, closed, head, next_due, presence, presence_until, paused, paused_queues,
    max_in_flight, concurrency, active_session
FROM inbox_recipients
WHERE recipient_number > ?1
ORDER BY recipient_number
LIMIT ?2
