-- Opens queues that get something claimable, and lowers the bounds of those that get a lower key.
WITH lowered AS (
    UPDATE inbox_queues AS q
    SET claim_floor = u.claim_key
    FROM UNNEST ($3::TEXT[], $4::BIGINT[]) AS u (queue, claim_key)
    WHERE q.tenant_number = $1 AND q.recipient_number = $2 AND q.queue = ANY ($3) AND q.queue = u.queue AND q.claim_floor > u.claim_key
)
INSERT INTO inbox_queues (tenant_number, recipient_number, queue, claim_floor)
SELECT $1, $2, u.queue, u.claim_key
FROM UNNEST ($3::TEXT[], $4::BIGINT[]) AS u (queue, claim_key)
WHERE NOT EXISTS (SELECT 1 FROM inbox_queues AS q WHERE q.tenant_number = $1 AND q.recipient_number = $2 AND q.queue = u.queue)
