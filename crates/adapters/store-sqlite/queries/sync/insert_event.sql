INSERT INTO event_log (position, id, type, channel, audience, origin, created_at, body, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
