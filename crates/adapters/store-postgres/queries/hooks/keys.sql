SELECT hook_id, key_id, secret, algorithm, public_key, created_at, expires_at FROM hook_keys WHERE hook_id = ANY ($1)
