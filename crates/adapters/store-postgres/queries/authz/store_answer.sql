INSERT INTO idempotency_keys (tenant_id, principal_id, key, request_hash, status, body, created_at)
SELECT tenant_id, principal_id, $3, $4, $5, $6, $7 FROM principals WHERE tenant_id = $1 AND principal_id = $2
ON CONFLICT (tenant_id, principal_id, key) DO UPDATE
SET request_hash = excluded.request_hash, status = excluded.status, body = excluded.body, created_at = excluded.created_at
WHERE idempotency_keys.created_at < $8
