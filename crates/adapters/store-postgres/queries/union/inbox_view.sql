SELECT r.recipient_number, r.agent_id, r.head, r.next_due, r.presence, r.presence_until, r.paused, r.paused_queues, r.max_in_flight, r.concurrency,
    r.active_session, h.tenant_number, h.head, h.floor, h.epoch
FROM log_heads AS h
LEFT JOIN inbox_recipients AS r ON r.tenant_number = h.tenant_number AND r.agent_id = $2 AND r.closed = 0
WHERE h.tenant_id = $1
