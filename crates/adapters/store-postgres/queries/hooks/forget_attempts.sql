DELETE FROM hook_attempts AS a
USING (
    SELECT k.tenant_id, k.hook_id,
        (SELECT max(n.number) FROM hook_attempts AS n WHERE n.tenant_id = k.tenant_id AND n.hook_id = k.hook_id) AS newest
    FROM unnest($1::TEXT[], $2::UUID[]) AS k (tenant_id, hook_id)
) AS l
WHERE a.tenant_id = l.tenant_id AND a.hook_id = l.hook_id AND a.number <= l.newest - $3
