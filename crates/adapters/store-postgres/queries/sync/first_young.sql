SELECT min(seq) FROM (
    SELECT seq, created_at FROM event_log
    WHERE tenant_number = $1 AND seq >= $2 AND seq <= $3
      AND slot >= (SELECT max(s.slot) FROM log_slots AS s WHERE s.tenant_number = $1 AND s.first_seq <= $2)
    ORDER BY seq LIMIT $4
) AS oldest WHERE created_at >= $5
