DELETE FROM inbox_ended
WHERE ctid = ANY (ARRAY(
    SELECT e.ctid
    FROM UNNEST ($1::BIGINT[], $2::BIGINT[], $3::UUID[]) AS u (tenant_number, recipient_number, event_id)
    CROSS JOIN LATERAL (
        SELECT n.ctid
        FROM inbox_ended AS n
        WHERE n.tenant_number = u.tenant_number AND n.recipient_number = u.recipient_number AND n.event_id = u.event_id
        FOR UPDATE SKIP LOCKED
    ) AS e
))
