SELECT event_id, inbox_seq FROM inbox_items WHERE recipient_number = ?1 ORDER BY event_id LIMIT ?2
