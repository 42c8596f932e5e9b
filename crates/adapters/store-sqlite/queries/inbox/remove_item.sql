DELETE FROM inbox_items WHERE recipient_number = ?1 AND event_id = ?2
