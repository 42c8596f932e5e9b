UPDATE work_leases SET node_id = NULL
FROM unnest($2::text[], $3::bigint[]) AS held (work, generation)
WHERE work_leases.work = held.work AND work_leases.generation = held.generation AND work_leases.node_id = $1
