SELECT position, event_id, checksum, body FROM inbox_payloads WHERE position > ?1 AND position <= ?2 ORDER BY position
