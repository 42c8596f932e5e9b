SELECT tenant_number, tenant_id, state, head, floor, floor_raised_at, epoch
FROM log_heads
WHERE tenant_number > ?1
ORDER BY tenant_number
LIMIT ?2
