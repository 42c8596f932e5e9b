UPDATE scheduled_events SET state = 'failed', failure = $3 WHERE tenant_id = $1 AND event_id = $2 AND state = 'waiting'
