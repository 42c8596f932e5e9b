UPDATE agent_consumer_cursors
SET window_version = window_version + 1, read_seq = $6, sent_before = $7, page_first = $8, highest_sent = $9, redeliver_up_to = $10,
    in_flight = $11, updated_at = $12
WHERE tenant_id = $1 AND agent_id = $2 AND consumer_name = $3 AND holder_session_id = $4 AND window_version = $5
