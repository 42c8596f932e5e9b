INSERT INTO agent_sessions (tenant_id, session_id, agent_id, device, transport, connected_at, heartbeat_at, last_seen, token_id, is_active)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (tenant_id, session_id) DO UPDATE
SET device = excluded.device, transport = excluded.transport, connected_at = excluded.connected_at, heartbeat_at = excluded.heartbeat_at,
    last_seen = excluded.last_seen, token_id = excluded.token_id, is_active = excluded.is_active
WHERE agent_sessions.agent_id = excluded.agent_id
