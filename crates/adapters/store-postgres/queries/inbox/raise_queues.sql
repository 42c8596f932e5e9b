-- Under the lock of the tenant's head row no claimable item is on its way that is not seen here.
UPDATE inbox_queues AS q
SET claim_floor = n.lowest
FROM (
    SELECT s.queue, coalesce(
        (
            SELECT min(i.claim_key)
            FROM inbox_items AS i
            WHERE i.tenant_number = $1 AND i.recipient_number = $2 AND i.queue = s.queue AND i.state = 0 AND i.claim_key >= s.claim_floor
        ),
        $3
    ) AS lowest
    FROM inbox_queues AS s
    WHERE s.tenant_number = $1 AND s.recipient_number = $2
    OFFSET 0
) AS n
WHERE q.tenant_number = $1 AND q.recipient_number = $2 AND q.queue = n.queue AND q.claim_floor < n.lowest
