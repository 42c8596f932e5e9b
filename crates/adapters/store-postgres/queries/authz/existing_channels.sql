SELECT c.space_id, c.channel_id
FROM UNNEST($2::TEXT[], $3::TEXT[]) AS asked (space_id, channel_id)
JOIN channels AS c ON c.tenant_id = $1 AND c.space_id = asked.space_id AND c.channel_id = asked.channel_id
