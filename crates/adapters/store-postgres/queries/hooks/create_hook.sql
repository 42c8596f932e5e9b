INSERT INTO hooks (hook_id, tenant_id, agent_id, kind, profile, url, queues, ignore_presence, max_rate_per_minute, state, disabled_cause, challenge_delivery,
    challenge_nonce, challenge_text, challenge_expires_at, last_status, last_attempt_at, exhausted_in_row, since, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
