UPDATE hooks
SET next_due = (SELECT min(next_at) FROM hook_deliveries AS d WHERE d.hook_id = ?1)
WHERE hook_id = ?1 AND next_due IS NOT (SELECT min(next_at) FROM hook_deliveries AS d WHERE d.hook_id = ?1)
