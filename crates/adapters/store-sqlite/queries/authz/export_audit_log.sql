SELECT tenant_id, entry_id, at, actor, action, target, decision, count, before, after, aggregated
FROM audit_log
WHERE entry_id > ?1
ORDER BY entry_id
LIMIT ?2
