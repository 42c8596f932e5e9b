INSERT INTO hook_attempts (tenant_id, hook_id, number, webhook_id, reason, event_id, attempt, at, latency, status, class)
SELECT n.tenant_id, n.hook_id,
    coalesce((SELECT max(a.number) FROM hook_attempts AS a WHERE a.tenant_id = n.tenant_id AND a.hook_id = n.hook_id), 0)
        + row_number() OVER (PARTITION BY n.tenant_id, n.hook_id ORDER BY n.place),
    n.webhook_id, n.reason, n.event_id, n.attempt, n.at, n.latency, n.status, n.class
FROM unnest($1::TEXT[], $2::UUID[], $3::TEXT[], $4::TEXT[], $5::UUID[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[], $9::INTEGER[], $10::TEXT[])
    WITH ORDINALITY AS n (tenant_id, hook_id, webhook_id, reason, event_id, attempt, at, latency, status, class, place)
