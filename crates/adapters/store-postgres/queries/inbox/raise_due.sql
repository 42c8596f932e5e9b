UPDATE inbox_recipients AS r
SET due_floor = n.lowest
FROM (
    SELECT coalesce(least(
        (
            SELECT due_at
            FROM inbox_items
            WHERE tenant_number = $1 AND recipient_number = $2 AND due_at IS NOT NULL AND (state, due_at) >= (0::SMALLINT, (SELECT r.due_floor FROM inbox_recipients AS r WHERE r.tenant_number = $1 AND r.recipient_number = $2)) AND state <= 0
            ORDER BY state, due_at
            LIMIT 1
        ),
        (
            SELECT due_at
            FROM inbox_items
            WHERE tenant_number = $1 AND recipient_number = $2 AND due_at IS NOT NULL AND (state, due_at) >= (1::SMALLINT, (SELECT r.due_floor FROM inbox_recipients AS r WHERE r.tenant_number = $1 AND r.recipient_number = $2)) AND state <= 1
            ORDER BY state, due_at
            LIMIT 1
        ),
        (
            SELECT due_at
            FROM inbox_items
            WHERE tenant_number = $1 AND recipient_number = $2 AND due_at IS NOT NULL AND (state, due_at) >= (2::SMALLINT, (SELECT r.due_floor FROM inbox_recipients AS r WHERE r.tenant_number = $1 AND r.recipient_number = $2)) AND state <= 2
            ORDER BY state, due_at
            LIMIT 1
        )
    ), $3) AS lowest
    OFFSET 0
) AS n
WHERE r.tenant_number = $1 AND r.recipient_number = $2 AND r.due_floor < n.lowest
