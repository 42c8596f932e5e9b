SELECT tenant_number FROM inbox_recipients WHERE recipient_number = ?1
