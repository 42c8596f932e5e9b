UPDATE inbox_recipients SET head = ?2 WHERE recipient_number = ?1 AND head < ?2
