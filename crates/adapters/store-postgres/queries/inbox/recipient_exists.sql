SELECT EXISTS (SELECT 1 FROM inbox_recipients WHERE tenant_number = $1 AND recipient_number = $2)
