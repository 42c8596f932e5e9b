SELECT key_id, public_key, pair, signs_from FROM hook_server_keys ORDER BY signs_from, key_id
