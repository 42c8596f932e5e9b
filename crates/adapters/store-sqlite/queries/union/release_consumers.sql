UPDATE agent_consumer_cursors
SET acked_seq = min(acked_seq, (SELECT head FROM log_heads AS h WHERE h.tenant_id = agent_consumer_cursors.tenant_id)),
    holder_session_id = NULL, window_version = window_version + 1, read_seq = 0, sent_before = 0, page_first = 0, highest_sent = 0,
    redeliver_up_to = 0, in_flight = x'', updated_at = ?1
