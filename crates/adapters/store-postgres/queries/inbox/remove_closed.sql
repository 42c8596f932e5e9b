DELETE FROM inbox_recipients
WHERE ctid = ANY (ARRAY(
    SELECT r.ctid
    FROM inbox_recipients AS r
    WHERE r.closed > 0 AND r.closed = 2 AND NOT EXISTS (
        SELECT 1 FROM inbox_ended AS e WHERE e.tenant_number = r.tenant_number AND e.recipient_number = r.recipient_number
    )
    ORDER BY r.recipient_number
    LIMIT $1
    FOR UPDATE SKIP LOCKED
))
