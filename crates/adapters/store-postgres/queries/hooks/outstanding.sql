SELECT d.hook_id, count(*)
FROM unnest($1::TEXT[], $2::UUID[]) AS k (tenant_id, hook_id)
JOIN hook_deliveries AS d ON d.tenant_id = k.tenant_id AND d.hook_id = k.hook_id
GROUP BY d.hook_id
ORDER BY d.hook_id
