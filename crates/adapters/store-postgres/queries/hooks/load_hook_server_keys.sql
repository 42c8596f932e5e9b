INSERT INTO hook_server_keys (
    key_id, public_key, pair, signs_from
)
SELECT
    key_id, public_key, pair, signs_from
FROM unnest(
        $1::TEXT[], $2::BYTEA[], $3::BYTEA[], $4::BIGINT[]
    ) AS i (
        key_id, public_key, pair, signs_from
    )
