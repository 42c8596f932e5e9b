SELECT tenant_number, head, floor, epoch, state FROM log_heads WHERE tenant_id = $1
