INSERT INTO inbox_payloads (position, event_id, audience, needed_by, checksum, body)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (position) DO NOTHING
