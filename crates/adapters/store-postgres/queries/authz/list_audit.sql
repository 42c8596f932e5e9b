SELECT entry_id, at, actor, action, target, decision, count, before, after
FROM audit_log
WHERE tenant_id = $1 AND entry_id < $2
    AND ($3::text IS NULL OR actor = $3) AND ($4::text IS NULL OR action = $4) AND ($5::text IS NULL OR decision = $5)
ORDER BY entry_id DESC
LIMIT $6
