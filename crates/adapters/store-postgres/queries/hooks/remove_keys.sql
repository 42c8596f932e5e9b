DELETE FROM hook_keys WHERE hook_id = $1 AND key_id = ANY ($2)
