DELETE FROM inbox_ended WHERE recipient_number = ?1 AND event_id = ?2
