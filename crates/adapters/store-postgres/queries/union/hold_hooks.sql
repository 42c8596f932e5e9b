UPDATE hooks AS k SET since = least(k.since, h.head)
FROM log_heads AS h WHERE h.tenant_id = k.tenant_id
