SELECT tenant_number, seq, event_id, array_to_string(ARRAY(SELECT r & 4294967295 FROM unnest(recipients) AS r ORDER BY r), ','), body
FROM inbox_payloads
WHERE (tenant_number, seq) > ($1, $2)
ORDER BY tenant_number, seq
LIMIT $3
