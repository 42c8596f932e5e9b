UPDATE agent_consumer_cursors SET acked_seq = $4, updated_at = $6
WHERE tenant_id = $1 AND agent_id = $2 AND consumer_name = $3 AND acked_seq < $4 AND epoch = $5
