INSERT INTO audit_log (tenant_id, at, actor, action, target, decision, count, before, after, aggregated)
SELECT tenant_id, $2, $3, $4, $5, $6, $7, $8, $9, false FROM tenants WHERE tenant_id = $1
