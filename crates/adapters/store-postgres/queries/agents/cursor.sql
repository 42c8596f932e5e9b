-- Locked: whoever takes the consumer at the same time waits, and then finds this holder.
SELECT acked_seq, epoch, holder_session_id, window_version, read_seq, sent_before, page_first, highest_sent, redeliver_up_to, in_flight
FROM agent_consumer_cursors
WHERE tenant_id = $1 AND agent_id = $2 AND consumer_name = $3
FOR NO KEY UPDATE
