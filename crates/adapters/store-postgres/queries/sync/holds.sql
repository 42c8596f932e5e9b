SELECT count(*) FROM unnest($2::bigint[], $3::uuid[]) AS wanted (seq, id)
JOIN event_log AS e ON e.tenant_number = $1 AND e.seq = wanted.seq AND e.id = wanted.id
