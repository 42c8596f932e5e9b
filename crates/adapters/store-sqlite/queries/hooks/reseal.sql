UPDATE hook_keys
SET secret = ?5
WHERE hook_id = ?1 AND key_id = ?2 AND secret = ?4 AND EXISTS (SELECT 1 FROM hooks AS h WHERE h.hook_id = ?1 AND h.tenant_id = ?3)
