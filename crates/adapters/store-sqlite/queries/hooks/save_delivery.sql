UPDATE hook_deliveries SET cause = ?3, attempts = ?4, next_at = ?5 WHERE hook_id = ?1 AND webhook_id = ?2
