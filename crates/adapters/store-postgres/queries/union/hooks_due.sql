SELECT hook_id, tenant_id, agent_id, kind, profile, url, queues, ignore_presence, max_rate_per_minute, state, disabled_cause, challenge_delivery,
    challenge_nonce, challenge_text, challenge_expires_at, last_status, last_attempt_at, exhausted_in_row, since, created_at, group_number
FROM (
    SELECT h.*,
        row_number() OVER (PARTITION BY h.tenant_id ORDER BY h.next_due, h.hook_id) AS turn,
        min(h.next_due) OVER (PARTITION BY h.tenant_id) AS first_due
    FROM hooks AS h
    JOIN log_heads AS l ON l.tenant_id = h.tenant_id AND l.state = 'active'
    JOIN principals AS p ON p.tenant_id = h.tenant_id AND p.principal_id = h.agent_id AND p.enabled
    WHERE h.group_number = ANY ($2) AND h.next_due <= $1 AND h.hook_id <> ALL ($3) AND h.tenant_id <> ALL ($4)
) AS d
ORDER BY turn, first_due, tenant_id
LIMIT $5
