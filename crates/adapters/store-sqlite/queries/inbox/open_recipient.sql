INSERT INTO inbox_recipients (tenant_number, agent_id, closed, head, presence, paused, concurrency)
VALUES (?1, ?2, 0, 0, 0, 0, 0)
RETURNING recipient_number
