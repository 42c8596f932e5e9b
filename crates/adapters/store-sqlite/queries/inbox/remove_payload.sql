DELETE FROM inbox_payloads WHERE position = ?1 AND needed_by <= 0
