DELETE FROM log_staged
WHERE (tenant_id, number) IN (
    SELECT tenant_id, number FROM log_staged WHERE state = 'failed' AND failed_at < $1 ORDER BY failed_at LIMIT $2 FOR UPDATE SKIP LOCKED
)
