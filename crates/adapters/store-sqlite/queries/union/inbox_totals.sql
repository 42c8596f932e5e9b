SELECT h.tenant_id,
    (SELECT count(*) FROM inbox_items AS i INDEXED BY inbox_items_current
        WHERE i.recipient_number = r.recipient_number AND i.is_current = 1),
    (SELECT count(*) FROM inbox_items AS i INDEXED BY inbox_items_aside
        WHERE i.recipient_number = r.recipient_number AND i.is_current = 0 AND i.state = 5),
    (SELECT count(*) FROM inbox_items AS i INDEXED BY inbox_items_aside
        WHERE i.recipient_number = r.recipient_number AND i.is_current = 0 AND i.state = 6),
    (SELECT i.created_at FROM inbox_items AS i
        WHERE i.recipient_number = r.recipient_number AND +i.is_current = 1
        ORDER BY i.event_id LIMIT 1),
    r.head
FROM inbox_recipients AS r
JOIN log_heads AS h ON h.tenant_number = r.tenant_number
WHERE r.closed = 0
