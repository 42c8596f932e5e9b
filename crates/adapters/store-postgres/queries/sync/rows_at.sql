-- Rows below `swept` are given up, though they lie there until their partition goes.
SELECT e.seq, e.id, e.type, e.channel, e.audience, e.origin, e.created_at, e.body, e.checksum
FROM log_heads AS h
CROSS JOIN unnest($2::bigint[]) AS wanted (seq)
CROSS JOIN LATERAL (
    SELECT max(s.slot) AS slot FROM log_slots AS s WHERE s.tenant_number = h.tenant_number AND s.first_seq <= wanted.seq
) AS place
JOIN event_log AS e ON e.tenant_number = h.tenant_number AND e.seq = wanted.seq AND e.slot = place.slot
WHERE h.tenant_number = $1 AND wanted.seq >= h.swept
