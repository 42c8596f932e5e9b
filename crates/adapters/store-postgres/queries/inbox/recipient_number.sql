SELECT recipient_number FROM inbox_recipients WHERE tenant_number = $1 AND agent_id = $2 AND closed = 0
