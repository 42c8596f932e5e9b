SELECT event_id, seq, body_hash
FROM deduplication_keys
WHERE tenant_number = $1 AND key = $2
    AND CASE WHEN seq IS NULL THEN event_id <> $3 ELSE expires_at > $4 OR log_work_is_current(tenant_number, seq, event_id) END
