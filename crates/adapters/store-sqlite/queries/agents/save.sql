UPDATE agent_consumer_cursors SET acked_seq = ?5, updated_at = ?6
WHERE tenant_id = ?1 AND agent_id = ?2 AND consumer_name = ?3 AND holder_session_id = ?4 AND acked_seq < ?5
