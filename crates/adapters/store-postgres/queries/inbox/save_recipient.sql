-- `next_due` may rise only when nothing was delivered since the row was read, which raises `head`.
UPDATE inbox_recipients
SET head = greatest(head, $3), next_due = CASE WHEN head = $4 THEN $5 ELSE least(next_due, $5) END, presence = $6, presence_until = $7, paused = $8,
    paused_queues = $9, max_in_flight = $10, concurrency = $11, active_session = $12
WHERE tenant_number = $1 AND recipient_number = $2
