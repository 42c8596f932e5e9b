INSERT INTO inbox_recipients (tenant_number, recipient_number, agent_id, closed, head, presence, paused, concurrency)
VALUES ($1::BIGINT, $1::BIGINT << 32 | nextval('inbox_recipient_numbers'), $2, 0, 0, 0, false, 0)
ON CONFLICT (tenant_number, agent_id) WHERE closed = 0 DO NOTHING
RETURNING recipient_number
