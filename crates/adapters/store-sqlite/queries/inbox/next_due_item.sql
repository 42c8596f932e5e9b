SELECT due_at FROM inbox_items WHERE recipient_number = ?1 AND state = ?2 AND due_at IS NOT NULL ORDER BY due_at LIMIT 1
