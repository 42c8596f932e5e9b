SELECT h.tenant_id, h.head, h.floor, h.epoch FROM json_each(?1) AS wanted JOIN log_heads AS h ON h.tenant_id = wanted.value
