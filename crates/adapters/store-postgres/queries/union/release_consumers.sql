UPDATE agent_consumer_cursors AS c
SET acked_seq = least(c.acked_seq, h.head), holder_session_id = NULL, window_version = c.window_version + 1, read_seq = 0, sent_before = 0,
    page_first = 0, highest_sent = 0, redeliver_up_to = 0, in_flight = '', updated_at = $1
FROM log_heads AS h WHERE h.tenant_id = c.tenant_id
