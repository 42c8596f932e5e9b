INSERT INTO hooks (
    hook_id, tenant_id, agent_id, kind, profile, url, queues, ignore_presence, max_rate_per_minute, state, disabled_cause,
    challenge_delivery, challenge_nonce, challenge_text, challenge_expires_at, last_status, last_attempt_at, exhausted_in_row, since,
    created_at, next_due
)
SELECT
    hook_id, tenant_id, agent_id, kind, profile, url, queues, ignore_presence, max_rate_per_minute, state, disabled_cause,
    challenge_delivery, challenge_nonce, challenge_text, challenge_expires_at, last_status, last_attempt_at, exhausted_in_row, since,
    created_at, next_due
FROM unnest(
        $1::UUID[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::TEXT[], $8::BOOLEAN[], $9::BIGINT[], $10::TEXT[],
        $11::TEXT[], $12::TEXT[], $13::TEXT[], $14::TEXT[], $15::BIGINT[], $16::BIGINT[], $17::BIGINT[], $18::BIGINT[], $19::BIGINT[],
        $20::BIGINT[], $21::BIGINT[]
    ) AS i (
        hook_id, tenant_id, agent_id, kind, profile, url, queues, ignore_presence, max_rate_per_minute, state, disabled_cause,
        challenge_delivery, challenge_nonce, challenge_text, challenge_expires_at, last_status, last_attempt_at, exhausted_in_row,
        since, created_at, next_due
    )
