SELECT tenant_number, seq, id, type, channel, audience, origin::BIGINT, created_at, body
FROM event_log
WHERE (tenant_number, seq) > ($1, $2)
ORDER BY tenant_number, seq
LIMIT $3
