-- Copies, and whether an item needs them still.
SELECT p.tenant_number, p.seq, EXISTS (
    SELECT 1 FROM inbox_items AS i
    WHERE i.tenant_number = p.tenant_number AND i.recipient_number = ANY (p.recipients) AND i.event_id = p.event_id
)
FROM inbox_payloads AS p
WHERE (p.tenant_number, p.seq) > ($1, $2)
ORDER BY p.tenant_number, p.seq
LIMIT $3
