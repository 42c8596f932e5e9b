DELETE FROM hook_deliveries WHERE hook_id = ?1 AND webhook_id = ?2
