-- One row, so failing is aborting; without a journal of the statement for each acknowledge.
INSERT OR FAIL INTO inbox_ended (recipient_number, event_id, inbox_seq, type, kind, source, summary, queue, priority, deduplication_key, available_at,
    expires_at, max_attempts, created_at, envelope_bytes, state, dead_letter, claim_key, delivery_attempts, counted_attempts, generation,
    lease_hash, history, ring_seq, ended_at)
SELECT recipient_number, event_id, inbox_seq, type, kind, source, summary, queue, priority, deduplication_key, available_at, expires_at,
    max_attempts, created_at, envelope_bytes, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12
FROM inbox_items
WHERE recipient_number = ?1 AND event_id = ?2
