SELECT count(*) FROM hooks WHERE tenant_id = ?1 AND agent_id = ?2
