INSERT INTO hook_attempts (hook_id, number, webhook_id, reason, event_id, attempt, at, latency, status, class)
VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM hook_attempts WHERE hook_id = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
