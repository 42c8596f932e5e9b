UPDATE agent_sessions
SET heartbeat_at = $4, last_seen = coalesce($5, last_seen), is_active = $6
WHERE tenant_id = $1 AND session_id = $2 AND agent_id = $3
