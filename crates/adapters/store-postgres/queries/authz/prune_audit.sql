DELETE FROM audit_log
WHERE (tenant_id, entry_id) IN (
    SELECT tenant_id, entry_id FROM audit_log WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
)
