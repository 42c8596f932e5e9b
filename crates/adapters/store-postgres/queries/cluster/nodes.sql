SELECT node_id, name, address, version, state, started_at, seen_at FROM nodes ORDER BY started_at, node_id
