SELECT key_id, public_key, pair, signs_from
FROM hook_server_keys
WHERE key_id > $1
ORDER BY key_id
LIMIT $2
