INSERT INTO audit_log (
    tenant_id, entry_id, at, actor, action, target, decision, count, before, after, aggregated
)
SELECT
    tenant_id, entry_id, at, actor, action, target, decision, count, before, after, aggregated
FROM unnest(
        $1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::TEXT[], $8::BIGINT[], $9::TEXT[], $10::TEXT[],
        $11::BOOLEAN[]
    ) AS i (
        tenant_id, entry_id, at, actor, action, target, decision, count, before, after, aggregated
    )
