UPDATE inbox_recipients
SET head = ?2, next_due = ?3, presence = ?4, presence_until = ?5, paused = ?6, paused_queues = ?7, max_in_flight = ?8, concurrency = ?9,
    active_session = ?10
WHERE recipient_number = ?1
