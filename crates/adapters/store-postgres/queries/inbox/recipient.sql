SELECT recipient_number, agent_id, head, next_due, presence, presence_until, paused, paused_queues, max_in_flight, concurrency, active_session
FROM inbox_recipients
WHERE tenant_number = $1 AND agent_id = $2 AND closed = 0
