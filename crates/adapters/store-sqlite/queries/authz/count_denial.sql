INSERT INTO audit_log (tenant_id, at, actor, action, target, decision, count, aggregated)
SELECT tenant_id, ?2, ?3, ?4, ?5, ?6, ?7, 1 FROM tenants WHERE tenant_id = ?1
ON CONFLICT (tenant_id, at, action, target, coalesce(actor, '')) WHERE aggregated = 1
DO UPDATE SET count = count + excluded.count
