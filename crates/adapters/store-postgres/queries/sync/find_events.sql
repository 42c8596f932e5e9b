SELECT e.seq, e.id FROM event_log AS e JOIN log_heads AS h ON h.tenant_number = e.tenant_number
WHERE h.tenant_id = $1 AND e.slot >= $2 AND e.seq > $3 AND e.id = ANY ($4)
