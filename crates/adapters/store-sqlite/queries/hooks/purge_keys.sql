DELETE FROM hook_keys
WHERE (hook_id, key_id) IN (SELECT hook_id, key_id FROM hook_keys WHERE expires_at < ?1 ORDER BY expires_at LIMIT ?2)
