UPDATE hooks AS h
SET next_due = f.next_due
FROM (
    SELECT k.tenant_id, k.hook_id,
        (SELECT min(d.next_at) FROM hook_deliveries AS d WHERE d.tenant_id = k.tenant_id AND d.hook_id = k.hook_id) AS next_due
    FROM unnest($1::TEXT[], $2::UUID[]) AS k (tenant_id, hook_id)
) AS f
WHERE h.tenant_id = f.tenant_id AND h.hook_id = f.hook_id AND h.next_due IS DISTINCT FROM f.next_due
