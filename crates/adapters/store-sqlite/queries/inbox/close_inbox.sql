UPDATE inbox_recipients SET closed = 1, next_due = NULL WHERE recipient_number = ?1
