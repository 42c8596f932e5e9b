INSERT INTO grants (
    tenant_id, grant_id, principal_id, resource, permission, created_at
)
SELECT
    tenant_id, grant_id, principal_id, resource, permission, created_at
FROM unnest(
        $1::TEXT[], $2::UUID[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::BIGINT[]
    ) AS i (
        tenant_id, grant_id, principal_id, resource, permission, created_at
    )
