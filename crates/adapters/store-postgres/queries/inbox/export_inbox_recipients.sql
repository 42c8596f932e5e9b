SELECT tenant_number, recipient_number & 4294967295, agent_id, closed::BIGINT, head, next_due, presence::BIGINT, presence_until, paused,
    paused_queues, max_in_flight, concurrency::BIGINT, active_session
FROM inbox_recipients
WHERE (tenant_number, recipient_number) > ($1::BIGINT, $1::BIGINT << 32 | $2::BIGINT)
ORDER BY tenant_number, recipient_number
LIMIT $3
