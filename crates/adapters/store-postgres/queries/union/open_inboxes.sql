SELECT r.tenant_number, r.recipient_number,
    EXISTS (SELECT 1 FROM principals AS p WHERE p.tenant_id = h.tenant_id AND p.principal_id = r.agent_id)
FROM inbox_recipients AS r
JOIN log_heads AS h ON h.tenant_number = r.tenant_number
WHERE (r.tenant_number, r.recipient_number) > ($1, $2) AND r.closed = 0
ORDER BY r.tenant_number, r.recipient_number
LIMIT $3
