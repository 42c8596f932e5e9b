INSERT INTO inbox_keys (
    tenant_number, lease_key
)
SELECT
    tenant_number, lease_key
FROM unnest(
        $1::BIGINT[], $2::BYTEA[]
    ) AS i (
        tenant_number, lease_key
    )
