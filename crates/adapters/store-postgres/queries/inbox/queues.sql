SELECT queue FROM inbox_queues WHERE tenant_number = $1 AND recipient_number = $2 ORDER BY queue
