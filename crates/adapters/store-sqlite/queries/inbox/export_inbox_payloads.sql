SELECT p.position, p.event_id, p.checksum, p.body, (
        SELECT group_concat(n, ',') FROM (
            SELECT r.recipient_number AS n
            FROM inbox_recipients AS r
            JOIN inbox_items AS i ON i.recipient_number = r.recipient_number AND i.event_id = p.event_id
            WHERE r.tenant_number = p.position >> 43 AND instr(' ' || p.audience || ' ', ' ' || r.agent_id || ' ') > 0
            ORDER BY r.recipient_number
        )
    )
FROM inbox_payloads AS p
WHERE p.position > ?1
ORDER BY p.position
LIMIT ?2
