SELECT d.hook_id, d.webhook_id, d.reason, d.cause, d.event_id, d.queue, d.attempts, d.next_at, d.created_at
FROM unnest($1::TEXT[], $2::UUID[]) WITH ORDINALITY AS k (tenant_id, hook_id, place)
CROSS JOIN LATERAL (
    SELECT * FROM hook_deliveries AS r
    WHERE r.tenant_id = k.tenant_id AND r.hook_id = k.hook_id AND r.next_at <= $3
    ORDER BY r.next_at, r.cause, r.webhook_id
    LIMIT $4
) AS d
ORDER BY k.place, d.next_at, d.cause, d.webhook_id
