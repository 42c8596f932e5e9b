INSERT INTO agent_sessions (
    tenant_id, session_id, agent_id, device, transport, connected_at, heartbeat_at, last_seen, token_id, is_active
)
SELECT
    tenant_id, session_id, agent_id, device, transport, connected_at, heartbeat_at, last_seen, token_id, is_active
FROM unnest(
        $1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[], $9::UUID[], $10::BOOLEAN[]
    ) AS i (
        tenant_id, session_id, agent_id, device, transport, connected_at, heartbeat_at, last_seen, token_id, is_active
    )
