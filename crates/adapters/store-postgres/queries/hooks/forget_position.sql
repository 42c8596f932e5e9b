DELETE FROM hook_positions AS p WHERE p.tenant_id = $1 AND NOT EXISTS (SELECT 1 FROM hooks AS h WHERE h.tenant_id = $1)
