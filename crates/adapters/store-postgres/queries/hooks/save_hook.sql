UPDATE hooks
SET profile = $3, url = $4, queues = $5, ignore_presence = $6, max_rate_per_minute = $7, state = $8, disabled_cause = $9, challenge_delivery = $10,
    challenge_nonce = $11, challenge_text = $12, challenge_expires_at = $13, last_status = $14, last_attempt_at = $15, exhausted_in_row = $16,
    since = $17
WHERE hook_id = $1 AND tenant_id = $2
