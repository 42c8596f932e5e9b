UPDATE work_leases SET node_id = $1, generation = generation + 1, expires_at = $5
WHERE work IN (
    SELECT work FROM work_leases
    WHERE work = ANY ($2::text[]) AND (node_id IS NULL OR expires_at <= $4)
    ORDER BY work LIMIT $3 FOR UPDATE SKIP LOCKED
)
RETURNING work, generation
