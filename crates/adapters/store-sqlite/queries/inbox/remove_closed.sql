DELETE FROM inbox_recipients
WHERE recipient_number IN (
    SELECT r.recipient_number FROM inbox_recipients AS r
    WHERE r.closed > 0 AND r.closed = 2 AND NOT EXISTS (SELECT 1 FROM inbox_ended AS e WHERE e.recipient_number = r.recipient_number)
    ORDER BY r.recipient_number
    LIMIT ?1
)
