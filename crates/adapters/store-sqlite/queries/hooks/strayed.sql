SELECT count(*)
FROM hooks
WHERE tenant_id = ?1 AND next_due IS NOT (SELECT min(next_at) FROM hook_deliveries AS d WHERE d.hook_id = hooks.hook_id)
