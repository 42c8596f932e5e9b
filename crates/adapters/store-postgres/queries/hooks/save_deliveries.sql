UPDATE hook_deliveries AS d
SET cause = n.cause, attempts = n.attempts, next_at = n.next_at
FROM unnest($1::TEXT[], $2::UUID[], $3::TEXT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[])
    AS n (tenant_id, hook_id, webhook_id, cause, attempts, next_at)
WHERE d.tenant_id = n.tenant_id AND d.hook_id = n.hook_id AND d.webhook_id = n.webhook_id
