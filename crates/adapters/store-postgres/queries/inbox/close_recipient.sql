UPDATE inbox_recipients SET closed = 1, next_due = NULL WHERE tenant_number = $1 AND recipient_number = $2 AND closed = 0
