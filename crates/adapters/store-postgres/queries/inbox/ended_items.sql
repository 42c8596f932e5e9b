SELECT recipient_number, event_id, inbox_seq, type, kind, source, summary, queue, priority, deduplication_key, available_at, expires_at, max_attempts,
    created_at, envelope_bytes, ring_seq, state, dead_letter, claim_key, delivery_attempts, counted_attempts, generation, lease_hash, history, ended_at
FROM inbox_ended
WHERE tenant_number = $1 AND recipient_number = $2 AND event_id = ANY ($3)
