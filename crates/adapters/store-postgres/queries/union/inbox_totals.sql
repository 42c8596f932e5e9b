SELECT h.tenant_id, sum(coalesce(i.current_items, 0))::BIGINT, sum(coalesce(i.dead_letters, 0))::BIGINT, sum(coalesce(i.quarantined, 0))::BIGINT,
    min(i.oldest), max(r.head)
FROM inbox_recipients AS r
JOIN log_heads AS h ON h.tenant_number = r.tenant_number
LEFT JOIN (
    SELECT tenant_number, recipient_number, count(*) FILTER (WHERE is_current) AS current_items, count(*) FILTER (WHERE state = 5) AS dead_letters,
        count(*) FILTER (WHERE state = 6) AS quarantined, min(created_at) FILTER (WHERE is_current) AS oldest
    FROM inbox_items
    GROUP BY tenant_number, recipient_number
) AS i ON i.tenant_number = r.tenant_number AND i.recipient_number = r.recipient_number
WHERE r.closed = 0
GROUP BY h.tenant_id
