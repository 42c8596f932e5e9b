SELECT tenant_id, principal_id, key, request_hash, status::BIGINT, body, created_at
FROM idempotency_keys
WHERE (tenant_id, principal_id, key) > ($1, $2, $3)
ORDER BY tenant_id, principal_id, key
LIMIT $4
