SELECT channel_id, created_at
FROM channels
WHERE tenant_id = $1 AND space_id = $2 AND channel_id > $3
ORDER BY channel_id
LIMIT $4
