UPDATE inbox_items SET ring_seq = ?3, is_current = ?4 WHERE recipient_number = ?1 AND event_id = ?2
