UPDATE inbox_recipients SET next_due = ?2 WHERE recipient_number = ?1 AND (next_due IS NULL OR next_due > ?2)
