UPDATE work_leases SET node_id = NULL WHERE node_id = $1
