DELETE FROM agent_sessions
WHERE ctid = ANY (ARRAY(SELECT s.ctid FROM agent_sessions AS s WHERE s.heartbeat_at < $1 ORDER BY s.heartbeat_at LIMIT $2 FOR UPDATE SKIP LOCKED))
