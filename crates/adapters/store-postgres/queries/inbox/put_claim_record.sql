INSERT INTO inbox_claims (tenant_number, recipient_number, key, request_hash, claims, created_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant_number, recipient_number, key) DO UPDATE
SET request_hash = excluded.request_hash, claims = excluded.claims, created_at = excluded.created_at
