SELECT recipient_number, event_id, created_at, ended_at
FROM inbox_ended
WHERE (recipient_number, event_id) > (?1, ?2)
ORDER BY recipient_number, event_id
LIMIT ?3
