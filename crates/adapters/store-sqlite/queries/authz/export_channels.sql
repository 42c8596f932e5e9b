SELECT tenant_id, space_id, channel_id, created_at
FROM channels
WHERE (tenant_id, space_id, channel_id) > (?1, ?2, ?3)
ORDER BY tenant_id, space_id, channel_id
LIMIT ?4
