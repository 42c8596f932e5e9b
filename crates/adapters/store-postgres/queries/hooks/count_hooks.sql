SELECT count(*) FILTER (WHERE agent_id = $2), count(*) FROM hooks WHERE tenant_id = $1
