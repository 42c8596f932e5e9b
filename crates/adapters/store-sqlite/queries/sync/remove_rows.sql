DELETE FROM event_log WHERE position >= ?1 AND position < ?2
