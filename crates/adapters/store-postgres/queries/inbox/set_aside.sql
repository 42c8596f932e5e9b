UPDATE inbox_items
SET state = 6, dead_letter = 2, is_current = false, due_at = NULL, lease_until = NULL, next_retry_at = NULL
WHERE tenant_number = $1 AND recipient_number = $2 AND event_id = ANY ($3) AND state <> 6
