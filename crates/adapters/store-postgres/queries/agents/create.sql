INSERT INTO agent_consumer_cursors (tenant_id, agent_id, consumer_name, acked_seq, epoch, holder_session_id, window_version, read_seq,
    sent_before, page_first, highest_sent, redeliver_up_to, in_flight, updated_at, taken_at)
VALUES ($1, $2, $3, $4, $5, $6, 1, 0, 0, 0, 0, 0, '', $7, $7)
