INSERT INTO inbox_recipients (
    tenant_number, recipient_number, agent_id, closed, head, next_due, presence, presence_until, paused, paused_queues, max_in_flight,
    concurrency, active_session
)
SELECT
    tenant_number, tenant_number << 32 | recipient_number, agent_id, closed, head, next_due, presence, presence_until, paused,
    paused_queues, max_in_flight, concurrency, active_session
FROM unnest(
        $1::BIGINT[], $2::BIGINT[], $3::TEXT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[], $9::BOOLEAN[],
        $10::TEXT[], $11::BIGINT[], $12::BIGINT[], $13::TEXT[]
    ) AS i (
        tenant_number, recipient_number, agent_id, closed, head, next_due, presence, presence_until, paused, paused_queues,
        max_in_flight, concurrency, active_session
    )
