-- What others are working on waits for the next walk.
UPDATE inbox_recipients AS r SET closed = 1, next_due = NULL
FROM (
    SELECT o.tenant_number, o.recipient_number FROM inbox_recipients AS o
    JOIN unnest($1::BIGINT[], $2::BIGINT[]) AS wanted (tenant_number, recipient_number) USING (tenant_number, recipient_number)
    WHERE o.closed = 0 FOR UPDATE OF o SKIP LOCKED
) AS free
WHERE r.tenant_number = free.tenant_number AND r.recipient_number = free.recipient_number
