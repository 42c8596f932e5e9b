SELECT tenant_number, recipient_number & 4294967295, key, request_hash, claims, created_at
FROM inbox_claims
WHERE (tenant_number, recipient_number, key) > ($1::BIGINT, $1::BIGINT << 32 | $2::BIGINT, $3)
ORDER BY tenant_number, recipient_number, key
LIMIT $4
