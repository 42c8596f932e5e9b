INSERT INTO idempotency_keys (tenant_id, principal_id, key, request_hash, status, body, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (tenant_id, principal_id, key) DO UPDATE
SET request_hash = excluded.request_hash, status = excluded.status, body = excluded.body, created_at = excluded.created_at
WHERE created_at < ?8
