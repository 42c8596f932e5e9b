SELECT tenant_id, next_due
FROM hooks
WHERE tenant_id > ?1 AND next_due IS NOT NULL
ORDER BY tenant_id, next_due
LIMIT 1
