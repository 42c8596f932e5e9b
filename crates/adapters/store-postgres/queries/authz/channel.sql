SELECT true FROM channels WHERE tenant_id = $1 AND space_id = $2 AND channel_id = $3
