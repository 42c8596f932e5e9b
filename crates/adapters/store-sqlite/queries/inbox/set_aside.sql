UPDATE inbox_items
SET state = 6, dead_letter = 2, is_current = 0, due_at = NULL, lease_until = NULL, next_retry_at = NULL
WHERE recipient_number = ?1 AND event_id = ?2
