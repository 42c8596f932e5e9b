SELECT q.queue
FROM inbox_queues AS q
WHERE q.tenant_number = $1 AND q.recipient_number = $2 AND q.queue <> ALL ($3::TEXT[])
    AND EXISTS (
        SELECT 1
        FROM inbox_items AS i
        WHERE i.tenant_number = $1 AND i.recipient_number = $2 AND i.queue = q.queue AND i.state = 0 AND i.claim_key >= q.claim_floor
    )
ORDER BY q.queue
LIMIT $4
