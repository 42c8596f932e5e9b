SELECT tenant_number, recipient_number FROM inbox_recipients WHERE closed > 0 AND closed = 1 ORDER BY recipient_number LIMIT 1 FOR UPDATE SKIP LOCKED
