INSERT INTO tenants (
    tenant_id, created_at
)
SELECT
    tenant_id, created_at
FROM unnest(
        $1::TEXT[], $2::BIGINT[]
    ) AS i (
        tenant_id, created_at
    )
