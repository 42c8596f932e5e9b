SELECT tenant_id, entry_id, at, actor, action, target, decision, count, before, after, aggregated
FROM audit_log
WHERE (tenant_id, entry_id) > ($1, $2)
ORDER BY tenant_id, entry_id
LIMIT $3
