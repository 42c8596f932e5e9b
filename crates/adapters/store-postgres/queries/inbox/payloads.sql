SELECT seq, event_id, checksum, body FROM inbox_payloads WHERE tenant_number = $1 AND seq = ANY ($2)
