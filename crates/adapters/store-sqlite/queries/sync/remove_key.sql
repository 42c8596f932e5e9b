DELETE FROM deduplication_keys WHERE tenant_number = ?1 AND key = ?2
