INSERT INTO nodes (node_id, name, address, version, state, started_at, seen_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (node_id) DO UPDATE SET name = excluded.name, address = excluded.address, version = excluded.version, state = excluded.state,
    started_at = excluded.started_at, seen_at = GREATEST(nodes.seen_at, excluded.seen_at)
