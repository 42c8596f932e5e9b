UPDATE inbox_recipients SET closed = 2 WHERE tenant_number = $1 AND recipient_number = $2
