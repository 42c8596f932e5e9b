INSERT INTO hook_positions (
    tenant_id, epoch, position
)
SELECT
    tenant_id, epoch, position
FROM unnest(
        $1::TEXT[], $2::UUID[], $3::BIGINT[]
    ) AS i (
        tenant_id, epoch, position
    )
