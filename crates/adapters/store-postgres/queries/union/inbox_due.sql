SELECT d.tenant_id, d.agent_id
FROM (
    SELECT h.tenant_id, r.agent_id, row_number() OVER (PARTITION BY r.tenant_number ORDER BY r.next_due, r.recipient_number) AS turn,
        min(r.next_due) OVER (PARTITION BY r.tenant_number) AS first_due
    FROM inbox_recipients AS r
    JOIN log_heads AS h ON h.tenant_number = r.tenant_number AND h.state = 'active'
    WHERE r.next_due <= $1
) AS d
ORDER BY d.turn, d.first_due, d.tenant_id
LIMIT $2
