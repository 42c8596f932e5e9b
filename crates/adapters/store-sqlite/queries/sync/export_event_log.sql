SELECT e.position, e.id, e.type, e.channel, e.audience, e.origin, e.created_at, e.body, e.checksum
FROM event_log AS e
JOIN log_heads AS h ON h.tenant_number = e.position >> 43 AND (e.position & 8796093022207) >= h.floor
WHERE e.position > ?1
ORDER BY e.position
LIMIT ?2
