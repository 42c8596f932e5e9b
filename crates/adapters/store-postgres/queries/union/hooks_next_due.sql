SELECT min(h.next_due)
FROM hooks AS h
JOIN log_heads AS l ON l.tenant_id = h.tenant_id AND l.state = 'active'
WHERE h.group_number = ANY ($1) AND h.next_due IS NOT NULL
