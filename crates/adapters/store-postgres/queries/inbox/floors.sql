-- Where scans of an inbox begin: of what is due, and of each queue.
SELECT r.due_floor,
    ARRAY(SELECT q.queue FROM inbox_queues AS q WHERE q.tenant_number = $1 AND q.recipient_number = $2 ORDER BY q.queue),
    ARRAY(SELECT q.claim_floor FROM inbox_queues AS q WHERE q.tenant_number = $1 AND q.recipient_number = $2 ORDER BY q.queue)
FROM inbox_recipients AS r
WHERE r.tenant_number = $1 AND r.recipient_number = $2
