DELETE FROM inbox_claims
WHERE (recipient_number, key) IN (
    SELECT recipient_number, key FROM inbox_claims WHERE created_at < ?1 ORDER BY created_at LIMIT ?2
)
