INSERT INTO principals (
    tenant_id, principal_id, kind, role, display_name, enabled, created_at
)
SELECT
    tenant_id, principal_id, kind, role, display_name, enabled, created_at
FROM unnest(
        $1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::BOOLEAN[], $7::BIGINT[]
    ) AS i (
        tenant_id, principal_id, kind, role, display_name, enabled, created_at
    )
