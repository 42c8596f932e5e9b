SELECT queue, claim_key FROM inbox_items WHERE recipient_number = ?1 AND state = 0 AND queue > ?2 ORDER BY queue, claim_key LIMIT 1
