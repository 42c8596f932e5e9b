UPDATE log_staged SET state = 'failed', failed_at = $3, failure = $4 WHERE tenant_id = $1 AND number = $2 AND state = 'waiting'
