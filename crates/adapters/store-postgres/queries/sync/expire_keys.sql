WITH expired AS (
    SELECT tenant_number, key, event_id, seq FROM deduplication_keys
    WHERE seq IS NOT NULL AND expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
), judged AS MATERIALIZED (
    SELECT tenant_number, key, log_work_is_current(tenant_number, seq, event_id) AS stays FROM expired
), prolonged AS (
    UPDATE deduplication_keys AS k SET expires_at = $3 FROM judged AS j WHERE j.stays AND k.tenant_number = j.tenant_number AND k.key = j.key
), removed AS (
    DELETE FROM deduplication_keys AS k USING judged AS j
    WHERE NOT j.stays AND k.tenant_number = j.tenant_number AND k.key = j.key AND k.expires_at < $1
    RETURNING 1
)
SELECT (SELECT count(*) FROM judged), (SELECT count(*) FROM removed)
