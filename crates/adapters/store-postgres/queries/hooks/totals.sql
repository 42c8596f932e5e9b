SELECT count(*) FILTER (WHERE state = 'active'), count(*) FILTER (WHERE state = 'pending_verification'), count(*) FILTER (WHERE state = 'disabled'),
    (SELECT count(*) FROM hook_deliveries)
FROM hooks
