-- First how many of the first come from each queue, then those, so that nothing is locked that is not answered.
WITH firsts AS MATERIALIZED (
    SELECT f.queue, count(*) AS wanted
    FROM (
        SELECT c.queue
        FROM inbox_queues AS q
        CROSS JOIN LATERAL (
            SELECT i.queue, i.claim_key, i.event_id
            FROM inbox_items AS i
            WHERE i.tenant_number = $1 AND i.recipient_number = $2 AND i.queue = q.queue AND i.state = 0 AND i.claim_key >= q.claim_floor
            ORDER BY i.claim_key, i.event_id
            LIMIT $4
        ) AS c
        WHERE q.tenant_number = $1 AND q.recipient_number = $2 AND q.queue = ANY ($3)
        ORDER BY c.claim_key, c.event_id
        LIMIT $4
    ) AS f
    GROUP BY f.queue
)
SELECT c.recipient_number, c.event_id, c.inbox_seq, c.type, c.kind, c.source, c.summary, c.queue, c.priority, c.deduplication_key, c.available_at, c.expires_at, c.max_attempts,
    c.created_at, c.envelope_bytes, c.ring_seq, c.state, c.dead_letter, c.claim_key, c.delivery_attempts, c.counted_attempts, c.generation, c.lease_hash, c.history,
    c.lease_until, c.attempt_deadline, c.claimed_at, c.heartbeat_at, c.session_id, c.backoff, c.next_retry_at
FROM firsts AS f
JOIN inbox_queues AS q ON q.tenant_number = $1 AND q.recipient_number = $2 AND q.queue = f.queue
CROSS JOIN LATERAL (
    SELECT *
    FROM inbox_items AS i
    WHERE i.tenant_number = $1 AND i.recipient_number = $2 AND i.queue = q.queue AND i.state = 0 AND i.claim_key >= q.claim_floor
    ORDER BY i.claim_key, i.event_id
    LIMIT f.wanted
    FOR UPDATE SKIP LOCKED
) AS c
ORDER BY c.claim_key, c.event_id
