DELETE FROM hook_server_keys WHERE key_id = $1
