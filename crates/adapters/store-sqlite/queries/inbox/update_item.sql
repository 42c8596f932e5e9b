UPDATE inbox_items
SET state = ?3, dead_letter = ?4, claim_key = ?5, delivery_attempts = ?6, counted_attempts = ?7, generation = ?8, lease_hash = ?9, history = ?10,
    lease_until = ?11, attempt_deadline = ?12, claimed_at = ?13, heartbeat_at = ?14, session_id = ?15, backoff = ?16, next_retry_at = ?17,
    due_at = ?18
WHERE recipient_number = ?1 AND event_id = ?2 AND ring_seq = ?19 AND is_current = ?20
