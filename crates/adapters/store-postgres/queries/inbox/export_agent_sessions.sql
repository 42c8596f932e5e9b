SELECT tenant_id, session_id, agent_id, device, transport, connected_at, heartbeat_at, last_seen, token_id, is_active
FROM agent_sessions
WHERE (tenant_id, session_id) > ($1, $2)
ORDER BY tenant_id, session_id
LIMIT $3
