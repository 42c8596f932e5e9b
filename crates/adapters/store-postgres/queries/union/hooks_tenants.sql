SELECT t.tenant_id, t.group_number, p.epoch, p.position
FROM (SELECT DISTINCT h.tenant_id, h.group_number FROM hooks AS h WHERE h.group_number = ANY ($1) AND h.tenant_id > $2) AS t
JOIN log_heads AS l ON l.tenant_id = t.tenant_id AND l.state = 'active'
LEFT JOIN hook_positions AS p ON p.tenant_id = t.tenant_id
ORDER BY t.tenant_id
LIMIT $3
