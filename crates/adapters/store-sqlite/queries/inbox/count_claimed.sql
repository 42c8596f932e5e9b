SELECT count(*) FROM (SELECT 1 FROM inbox_items WHERE recipient_number = ?1 AND state = 1 AND due_at IS NOT NULL LIMIT ?2)
