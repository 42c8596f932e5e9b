SELECT t.tenant_id, h.state, h.head, h.epoch, t.created_at
FROM tenants AS t
JOIN log_heads AS h ON h.tenant_id = t.tenant_id
WHERE t.tenant_id = $1
