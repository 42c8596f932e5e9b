DELETE FROM nodes WHERE node_id IN (SELECT node_id FROM nodes WHERE seen_at < $1 FOR UPDATE SKIP LOCKED)
