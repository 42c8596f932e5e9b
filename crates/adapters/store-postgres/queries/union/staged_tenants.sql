WITH RECURSIVE staged (tenant_id) AS (
    (SELECT s.tenant_id FROM log_staged AS s WHERE s.state = 'waiting' AND s.tenant_id > $1 ORDER BY s.tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT s.tenant_id FROM log_staged AS s WHERE s.state = 'waiting' AND s.tenant_id > p.tenant_id ORDER BY s.tenant_id LIMIT 1)
    FROM staged AS p
    WHERE p.tenant_id IS NOT NULL
)
SELECT h.tenant_id
FROM staged AS s
JOIN log_heads AS h ON h.tenant_id = s.tenant_id AND h.state = 'active'
ORDER BY h.tenant_id
LIMIT $2
