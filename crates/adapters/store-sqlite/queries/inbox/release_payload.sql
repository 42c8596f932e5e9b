UPDATE inbox_payloads SET needed_by = needed_by - 1 WHERE position = ?1
