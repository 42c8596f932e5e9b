INSERT INTO inbox_payloads (tenant_number, seq, event_id, checksum, recipients, body)
SELECT $1, u.seq, u.event_id, u.checksum, n.recipients, u.body
FROM UNNEST ($2::BIGINT[], $3::UUID[], $4::BIGINT[], $5::TEXT[]) AS u (seq, event_id, checksum, body)
JOIN (
    SELECT a.event_id, array_agg(i.recipient_number) AS recipients
    FROM UNNEST ($6::UUID[], $7::TEXT[]) AS a (event_id, agent)
    JOIN inbox_recipients AS r ON r.tenant_number = $1 AND r.agent_id = a.agent
    JOIN inbox_items AS i ON i.tenant_number = $1 AND i.recipient_number = r.recipient_number AND i.event_id = a.event_id
    GROUP BY a.event_id
) AS n ON n.event_id = u.event_id
ON CONFLICT (tenant_number, seq) DO NOTHING
