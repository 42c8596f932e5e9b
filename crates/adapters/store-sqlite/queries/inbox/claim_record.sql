SELECT request_hash, claims, created_at FROM inbox_claims WHERE recipient_number = ?1 AND key = ?2
