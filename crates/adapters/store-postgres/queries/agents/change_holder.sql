UPDATE agent_consumer_cursors
SET epoch = $4, holder_session_id = $6, updated_at = $5, taken_at = $5, window_version = window_version + 1, read_seq = 0, sent_before = 0,
    page_first = 0, highest_sent = 0, redeliver_up_to = 0, in_flight = ''
WHERE tenant_id = $1 AND agent_id = $2 AND consumer_name = $3
