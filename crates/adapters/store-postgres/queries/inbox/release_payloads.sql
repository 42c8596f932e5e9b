-- A copy goes with the last item that it was made for. Two that end at the same moment leave it to the pruning.
DELETE FROM inbox_payloads AS p
WHERE p.tenant_number = $1 AND p.seq = ANY ($2) AND NOT EXISTS (
    SELECT 1 FROM inbox_items AS i
    WHERE i.tenant_number = p.tenant_number AND i.recipient_number = ANY (p.recipients) AND i.event_id = p.event_id
)
