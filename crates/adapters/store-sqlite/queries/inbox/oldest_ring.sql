SELECT min(ring_seq) FROM inbox_items WHERE recipient_number = ?1 AND is_current = 1
