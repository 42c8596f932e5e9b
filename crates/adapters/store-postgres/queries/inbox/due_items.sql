-- Compared as rows, because nothing but the index of what is due can serve that.
SELECT d.recipient_number, d.event_id, d.inbox_seq, d.type, d.kind, d.source, d.summary, d.queue, d.priority, d.deduplication_key, d.available_at, d.expires_at, d.max_attempts,
    d.created_at, d.envelope_bytes, d.ring_seq, d.state, d.dead_letter, d.claim_key, d.delivery_attempts, d.counted_attempts, d.generation, d.lease_hash, d.history,
    d.lease_until, d.attempt_deadline, d.claimed_at, d.heartbeat_at, d.session_id, d.backoff, d.next_retry_at
FROM (
    SELECT * FROM (
        SELECT *
        FROM inbox_items
        WHERE tenant_number = $1 AND recipient_number = $2 AND due_at IS NOT NULL AND (state, due_at, event_id) > (0::SMALLINT, greatest($4, (SELECT r.due_floor FROM inbox_recipients AS r WHERE r.tenant_number = $1 AND r.recipient_number = $2) - 1), $5)
            AND (state, due_at) <= (0::SMALLINT, $3)
        ORDER BY state, due_at, event_id
        LIMIT $6
        FOR UPDATE SKIP LOCKED
    ) AS s1
    UNION ALL
    SELECT * FROM (
        SELECT *
        FROM inbox_items
        WHERE tenant_number = $1 AND recipient_number = $2 AND due_at IS NOT NULL AND (state, due_at, event_id) > (1::SMALLINT, greatest($4, (SELECT r.due_floor FROM inbox_recipients AS r WHERE r.tenant_number = $1 AND r.recipient_number = $2) - 1), $5)
            AND (state, due_at) <= (1::SMALLINT, $3)
        ORDER BY state, due_at, event_id
        LIMIT $6
        FOR UPDATE SKIP LOCKED
    ) AS s2
    UNION ALL
    SELECT * FROM (
        SELECT *
        FROM inbox_items
        WHERE tenant_number = $1 AND recipient_number = $2 AND due_at IS NOT NULL AND (state, due_at, event_id) > (2::SMALLINT, greatest($4, (SELECT r.due_floor FROM inbox_recipients AS r WHERE r.tenant_number = $1 AND r.recipient_number = $2) - 1), $5)
            AND (state, due_at) <= (2::SMALLINT, $3)
        ORDER BY state, due_at, event_id
        LIMIT $6
        FOR UPDATE SKIP LOCKED
    ) AS s3
) AS d
ORDER BY d.due_at, d.event_id
LIMIT $6
