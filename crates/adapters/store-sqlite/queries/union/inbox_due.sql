SELECT h.tenant_id, r.agent_id
FROM inbox_recipients AS r
JOIN log_heads AS h ON h.tenant_number = r.tenant_number AND h.state = 'active'
WHERE r.next_due <= ?1
ORDER BY r.next_due
