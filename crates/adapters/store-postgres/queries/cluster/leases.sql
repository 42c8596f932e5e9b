SELECT work, node_id, generation FROM work_leases WHERE node_id IS NOT NULL AND expires_at > $1 ORDER BY work
