SELECT hook_id, tenant_id, agent_id, kind, profile, url, queues, ignore_presence, max_rate_per_minute, state, disabled_cause, challenge_delivery,
    challenge_nonce, challenge_text, challenge_expires_at, last_status, last_attempt_at, exhausted_in_row, since, created_at
FROM hooks
WHERE tenant_id = $1 AND hook_id > $2
ORDER BY hook_id
