SELECT tenant_number, recipient_number, event_id, created_at, ended_at
FROM inbox_ended
WHERE (tenant_number, recipient_number, event_id) > ($1, $2, $3)
ORDER BY tenant_number, recipient_number, event_id
LIMIT $4
