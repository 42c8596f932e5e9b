-- Each number is counted up to `$6`; `next_due` is that of the first that counts.
SELECT
    (
        SELECT coalesce(sum(c.counted), 0)::BIGINT
        FROM inbox_queues AS q
        CROSS JOIN LATERAL (
            SELECT count(*) AS counted FROM (
                SELECT 1
                FROM inbox_items AS i
                WHERE i.tenant_number = $1 AND i.recipient_number = $2 AND i.queue = q.queue AND i.state = 0 AND i.claim_key >= q.claim_floor
                    AND (i.expires_at IS NULL OR i.expires_at > $5)
                LIMIT $6
            ) AS n
        ) AS c
        WHERE q.tenant_number = $1 AND q.recipient_number = $2
            AND ($3::TEXT[] IS NULL OR q.queue = ANY ($3)) AND q.queue <> ALL ($4::TEXT[])
    ),
    (
        SELECT count(*) FROM (
            SELECT 1
            FROM inbox_items
            WHERE tenant_number = $1 AND recipient_number = $2 AND due_at IS NOT NULL AND (state, due_at) >= (2::SMALLINT, (SELECT r.due_floor FROM inbox_recipients AS r WHERE r.tenant_number = $1 AND r.recipient_number = $2)) AND (state, due_at) <= (2::SMALLINT, $5)
                AND next_retry_at <= $5 AND (expires_at IS NULL OR expires_at > $5) AND ($3::TEXT[] IS NULL OR queue = ANY ($3)) AND queue <> ALL ($4::TEXT[])
            LIMIT $6
        ) AS n
    ),
    c.counted, c.first_due, r.counted, r.first_due
FROM (
    SELECT count(*) AS counted, min(n.due_at) AS first_due FROM (
        SELECT due_at
        FROM inbox_items
        WHERE tenant_number = $1 AND recipient_number = $2 AND due_at IS NOT NULL AND (state, due_at) >= (1::SMALLINT, (SELECT r.due_floor FROM inbox_recipients AS r WHERE r.tenant_number = $1 AND r.recipient_number = $2)) AND state <= 1 AND ($3::TEXT[] IS NULL OR queue = ANY ($3)) AND queue <> ALL ($4::TEXT[])
        ORDER BY state, due_at
        LIMIT $6
    ) AS n
) AS c,
(
    SELECT count(*) AS counted, min(n.due_at) AS first_due FROM (
        SELECT due_at
        FROM inbox_items
        WHERE tenant_number = $1 AND recipient_number = $2 AND due_at IS NOT NULL AND (state, due_at) >= (2::SMALLINT, greatest($5 + 1, (SELECT r.due_floor FROM inbox_recipients AS r WHERE r.tenant_number = $1 AND r.recipient_number = $2))) AND state <= 2 AND ($3::TEXT[] IS NULL OR queue = ANY ($3)) AND queue <> ALL ($4::TEXT[])
        ORDER BY state, due_at
        LIMIT $6
    ) AS n
) AS r
