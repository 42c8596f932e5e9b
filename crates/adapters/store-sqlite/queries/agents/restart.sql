UPDATE agent_consumer_cursors
SET acked_seq = iif(acked_seq > ?7, ?5, max(acked_seq, ?5)), updated_at = ?6, window_version = window_version + 1, read_seq = 0,
    sent_before = 0, page_first = 0, highest_sent = 0, redeliver_up_to = 0, in_flight = x''
WHERE tenant_id = ?1 AND agent_id = ?2 AND consumer_name = ?3 AND holder_session_id = ?4
RETURNING acked_seq
