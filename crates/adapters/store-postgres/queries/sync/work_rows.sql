SELECT seq, id, type, channel, audience, origin, created_at, body, checksum
FROM event_log
WHERE tenant_number = $1 AND seq >= $2 AND seq < $3 AND origin = 2
  AND slot >= (SELECT max(s.slot) FROM log_slots AS s WHERE s.tenant_number = $1 AND s.first_seq <= $2)
ORDER BY seq
