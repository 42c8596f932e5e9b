SELECT queue, next_retry_at, expires_at
FROM inbox_items
WHERE recipient_number = ?1 AND state = ?2 AND due_at <= ?3
ORDER BY due_at
