SELECT count(*) FROM agent_consumer_cursors WHERE tenant_id = $1 AND agent_id = $2
