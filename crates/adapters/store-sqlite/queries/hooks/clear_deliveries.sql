DELETE FROM hook_deliveries WHERE hook_id = ?1
