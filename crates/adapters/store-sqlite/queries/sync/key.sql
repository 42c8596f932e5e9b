SELECT body_hash, event_id, seq, expires_at FROM deduplication_keys WHERE tenant_number = ?1 AND key = ?2
