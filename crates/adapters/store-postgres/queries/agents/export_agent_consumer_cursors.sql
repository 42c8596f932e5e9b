SELECT tenant_id, agent_id, consumer_name, acked_seq, epoch, holder_session_id, window_version, read_seq, sent_before, page_first,
    highest_sent, redeliver_up_to, in_flight, updated_at, taken_at
FROM agent_consumer_cursors
WHERE (tenant_id, agent_id, consumer_name) > ($1, $2, $3)
ORDER BY tenant_id, agent_id, consumer_name
LIMIT $4
