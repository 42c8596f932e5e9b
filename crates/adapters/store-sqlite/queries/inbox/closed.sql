UPDATE inbox_recipients SET closed = 2 WHERE recipient_number = ?1
