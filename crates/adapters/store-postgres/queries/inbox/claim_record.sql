SELECT request_hash, claims, created_at FROM inbox_claims WHERE tenant_number = $1 AND recipient_number = $2 AND key = $3
