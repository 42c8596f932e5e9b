INSERT INTO deduplication_keys (tenant_number, key, body_hash, event_id, seq, expires_at)
VALUES ($1, $2, $3, $4, NULL, $5)
ON CONFLICT (tenant_number, key) DO UPDATE
SET body_hash = excluded.body_hash, event_id = excluded.event_id, seq = excluded.seq, expires_at = excluded.expires_at
