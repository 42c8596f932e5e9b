INSERT INTO hook_server_keys (key_id, public_key, pair, signs_from)
VALUES ($1, $2, $3, $4)
ON CONFLICT (key_id) DO UPDATE SET public_key = excluded.public_key, pair = excluded.pair, signs_from = excluded.signs_from
