-- Ends the first items of an agent that is gone; damaged ones too.
WITH doomed AS (
    SELECT event_id FROM inbox_items WHERE tenant_number = $1 AND recipient_number = $2 ORDER BY event_id LIMIT $3 FOR UPDATE
), gone AS (
    DELETE FROM inbox_items AS i
    USING doomed AS d
    WHERE i.tenant_number = $1 AND i.recipient_number = $2 AND i.event_id = d.event_id
    RETURNING i.*
)
INSERT INTO inbox_ended (
    tenant_number, recipient_number, event_id, inbox_seq, type, kind, source, summary, queue, priority, deduplication_key, available_at, expires_at,
    max_attempts, created_at, envelope_bytes, state, dead_letter, ring_seq, claim_key, delivery_attempts, counted_attempts, generation, history, ended_at
)
SELECT tenant_number, recipient_number, event_id, inbox_seq, type, kind, source, summary, queue, priority, deduplication_key, available_at, expires_at,
    max_attempts, created_at, envelope_bytes, 7, dead_letter, ring_seq, claim_key, delivery_attempts, counted_attempts, generation + 1, history, $4
FROM gone
RETURNING inbox_seq
