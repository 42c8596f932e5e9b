UPDATE hooks
SET since = min(since, (SELECT head FROM log_heads AS h WHERE h.tenant_id = hooks.tenant_id))
