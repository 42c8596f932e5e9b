SELECT acked_seq FROM agent_consumer_cursors
WHERE tenant_id = ?1 AND agent_id = ?2 AND consumer_name = ?3 AND holder_session_id = ?4
