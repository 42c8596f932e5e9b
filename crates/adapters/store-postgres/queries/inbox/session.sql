SELECT session_id, agent_id, device, transport, connected_at, heartbeat_at, last_seen, token_id, is_active
FROM agent_sessions
WHERE tenant_id = $1 AND session_id = $2
