SELECT h.tenant_id, o.hook_id, o.key_id, o.secret, o.algorithm, o.public_key, o.created_at, o.expires_at
FROM hook_keys AS o
LEFT JOIN hooks AS h ON h.hook_id = o.hook_id
WHERE (o.hook_id, o.key_id) > (?1, ?2)
ORDER BY o.hook_id, o.key_id
LIMIT ?3
