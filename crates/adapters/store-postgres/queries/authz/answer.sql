SELECT request_hash, status, body
FROM idempotency_keys
WHERE tenant_id = $1 AND principal_id = $2 AND key = $3 AND created_at >= $4
