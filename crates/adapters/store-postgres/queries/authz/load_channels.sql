INSERT INTO channels (
    tenant_id, space_id, channel_id, created_at
)
SELECT
    tenant_id, space_id, channel_id, created_at
FROM unnest(
        $1::TEXT[], $2::TEXT[], $3::TEXT[], $4::BIGINT[]
    ) AS i (
        tenant_id, space_id, channel_id, created_at
    )
