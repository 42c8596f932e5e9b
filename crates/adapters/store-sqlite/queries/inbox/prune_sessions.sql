DELETE FROM agent_sessions
WHERE (tenant_id, session_id) IN (
    SELECT tenant_id, session_id FROM agent_sessions WHERE heartbeat_at < ?1 ORDER BY heartbeat_at LIMIT ?2
)
