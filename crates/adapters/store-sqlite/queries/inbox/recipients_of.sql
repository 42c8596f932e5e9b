SELECT recipient_number, head FROM inbox_recipients WHERE tenant_number = ?1 AND closed = 0 ORDER BY agent_id
