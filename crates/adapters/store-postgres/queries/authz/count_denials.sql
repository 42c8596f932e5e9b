-- One row per line at most, in one order for everybody: nodes that count the same lines wait for one another, never in a circle.
INSERT INTO audit_log (tenant_id, at, actor, action, target, decision, count, aggregated)
SELECT d.tenant_id, d.at, d.actor, d.action, d.target, min(d.decision), sum(d.count)::bigint, true
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])
    AS d (tenant_id, at, actor, action, target, decision, count)
JOIN tenants AS t ON t.tenant_id = d.tenant_id
GROUP BY d.tenant_id, d.at, d.actor, d.action, d.target
ORDER BY d.tenant_id, d.at, d.action, d.target, d.actor
ON CONFLICT (tenant_id, at, action, target, coalesce(actor, '')) WHERE aggregated
DO UPDATE SET count = audit_log.count + excluded.count
