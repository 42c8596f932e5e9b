SELECT min(position) FROM (
    SELECT position, created_at FROM event_log WHERE position >= ?1 AND position <= ?2 ORDER BY position LIMIT ?3
) WHERE created_at >= ?4
