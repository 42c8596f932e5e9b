SELECT tenant_number, key, body_hash, event_id, seq, expires_at
FROM deduplication_keys
WHERE (tenant_number, key) > (?1, ?2)
ORDER BY tenant_number, key
LIMIT ?3
