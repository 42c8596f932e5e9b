INSERT INTO hook_deliveries (tenant_id, hook_id, webhook_id, reason, cause, event_id, queue, attempts, next_at, created_at)
SELECT *
FROM unnest($1::TEXT[], $2::UUID[], $3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::UUID[], $7::TEXT[], $8::BIGINT[], $9::BIGINT[], $10::BIGINT[])
ON CONFLICT (tenant_id, hook_id, webhook_id) DO NOTHING
