INSERT INTO work_leases (work, node_id, generation, expires_at)
SELECT work, NULL, 0, 0 FROM unnest($1::text[]) AS wanted (work)
WHERE NOT EXISTS (SELECT FROM work_leases known WHERE known.work = wanted.work)
ORDER BY work
ON CONFLICT (work) DO NOTHING
