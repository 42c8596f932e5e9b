DELETE FROM deduplication_keys
WHERE (tenant_number, key) IN (
    SELECT tenant_number, key FROM deduplication_keys
    WHERE seq IS NOT NULL AND expires_at < ?1
    ORDER BY expires_at
    LIMIT ?2
)
