UPDATE publish_limits
SET payload_bytes = $1, depth = $2, audience = $3, recipients = $4, correlation_entries = $5, correlation_chars = $6, schedule_horizon = $7
WHERE (payload_bytes, depth, audience, recipients, correlation_entries, correlation_chars, schedule_horizon) IS DISTINCT FROM ($1, $2, $3, $4, $5, $6, $7)
