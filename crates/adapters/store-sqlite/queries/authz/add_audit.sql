INSERT INTO audit_log (tenant_id, at, actor, action, target, decision, count, before, after, aggregated)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0)
