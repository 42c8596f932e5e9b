UPDATE agent_consumer_cursors
SET acked_seq = CASE WHEN acked_seq > $6 THEN $4 ELSE greatest(acked_seq, $4) END, updated_at = $5, window_version = window_version + 1,
    read_seq = 0, sent_before = 0, page_first = 0, highest_sent = 0, redeliver_up_to = 0, in_flight = ''
WHERE tenant_id = $1 AND agent_id = $2 AND consumer_name = $3
RETURNING acked_seq
