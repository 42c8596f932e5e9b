SELECT tenant_id, head, floor, epoch FROM log_heads WHERE tenant_id = ANY ($1)
