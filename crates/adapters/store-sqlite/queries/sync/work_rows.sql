SELECT position, id, type, channel, audience, origin, created_at, body, checksum
FROM event_log
WHERE position >= ?1 AND position < ?2 AND origin = 2
ORDER BY position
