SELECT r.recipient_number,
    EXISTS (SELECT 1 FROM principals AS p WHERE p.tenant_id = h.tenant_id AND p.principal_id = r.agent_id)
FROM inbox_recipients AS r
CROSS JOIN log_heads AS h ON h.tenant_number = r.tenant_number
WHERE r.recipient_number > ?1 AND r.closed = 0
ORDER BY r.recipient_number
LIMIT ?2
