SELECT tenant_id, agent_id, consumer_name, holder_session_id
FROM agent_consumer_cursors
WHERE taken_at >= $1
ORDER BY taken_at
