INSERT INTO inbox_items (recipient_number, event_id, inbox_seq, type, kind, source, summary, queue, priority, deduplication_key, available_at,
    expires_at, max_attempts, created_at, envelope_bytes, claim_key, ring_seq, due_at, state, is_current, dead_letter, delivery_attempts,
    counted_attempts, generation)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?3, ?12, 0, 1, 0, 0, 0, 0)
