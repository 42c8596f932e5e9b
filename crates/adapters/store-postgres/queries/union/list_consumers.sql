SELECT c.consumer_name, c.updated_at, h.head, h.epoch, c.acked_seq, c.epoch, c.holder_session_id, c.window_version, c.read_seq, c.sent_before,
    c.page_first, c.highest_sent, c.redeliver_up_to, c.in_flight
FROM agent_consumer_cursors AS c
JOIN log_heads AS h ON h.tenant_id = c.tenant_id
WHERE c.tenant_id = $1 AND c.agent_id = $2 AND c.consumer_name > $3
ORDER BY c.consumer_name
LIMIT $4
