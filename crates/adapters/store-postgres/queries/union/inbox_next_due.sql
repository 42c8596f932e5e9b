SELECT r.next_due
FROM inbox_recipients AS r
JOIN log_heads AS h ON h.tenant_number = r.tenant_number AND h.state = 'active'
WHERE r.next_due IS NOT NULL
ORDER BY r.next_due
LIMIT 1
