SELECT tenant_number, key, event_id, seq FROM deduplication_keys WHERE seq IS NOT NULL AND expires_at < ?1 ORDER BY expires_at LIMIT ?2
