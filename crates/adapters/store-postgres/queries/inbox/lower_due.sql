UPDATE inbox_recipients SET due_floor = $3 WHERE tenant_number = $1 AND recipient_number = $2 AND due_floor > $3
