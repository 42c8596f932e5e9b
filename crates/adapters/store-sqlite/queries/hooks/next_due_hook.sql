SELECT next_due, hook_id, agent_id
FROM hooks
WHERE tenant_id = ?1 AND next_due <= ?2 AND (next_due, hook_id) > (?3, ?4)
ORDER BY next_due, hook_id
LIMIT 1
