SELECT k.hook_id, k.key_id, h.tenant_id, k.secret
FROM hook_keys AS k
CROSS JOIN hooks AS h ON h.hook_id = k.hook_id
WHERE (k.hook_id, k.key_id) > (?1, ?2) AND k.secret IS NOT NULL
ORDER BY k.hook_id, k.key_id
