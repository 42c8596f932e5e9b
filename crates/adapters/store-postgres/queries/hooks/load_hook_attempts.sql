INSERT INTO hook_attempts (
    tenant_id, hook_id, number, webhook_id, reason, event_id, attempt, at, latency, status, class
)
SELECT
    tenant_id, hook_id, number, webhook_id, reason, event_id, attempt, at, latency, status, class
FROM unnest(
        $1::TEXT[], $2::UUID[], $3::BIGINT[], $4::TEXT[], $5::TEXT[], $6::UUID[], $7::BIGINT[], $8::BIGINT[], $9::BIGINT[],
        $10::BIGINT[], $11::TEXT[]
    ) AS i (
        tenant_id, hook_id, number, webhook_id, reason, event_id, attempt, at, latency, status, class
    )
