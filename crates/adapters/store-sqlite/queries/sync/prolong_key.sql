UPDATE deduplication_keys SET expires_at = ?3 WHERE tenant_number = ?1 AND key = ?2
