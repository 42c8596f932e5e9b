UPDATE work_leases SET expires_at = GREATEST(work_leases.expires_at, $5)
FROM unnest($2::text[], $3::bigint[]) AS held (work, generation)
WHERE work_leases.work = held.work AND work_leases.generation = held.generation AND work_leases.node_id = $1 AND work_leases.expires_at > $4
RETURNING work_leases.work, work_leases.generation
