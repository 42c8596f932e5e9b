DELETE FROM deduplication_keys WHERE tenant_number = $1 AND key = $2 AND event_id = $3 AND seq IS NULL
