UPDATE agent_consumer_cursors SET epoch = $4, updated_at = $5, taken_at = $5
WHERE tenant_id = $1 AND agent_id = $2 AND consumer_name = $3
