SELECT count(*) FROM hooks WHERE tenant_id = ?1
