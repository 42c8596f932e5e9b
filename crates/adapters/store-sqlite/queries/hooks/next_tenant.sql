SELECT tenant_id FROM hooks WHERE tenant_id > ?1 ORDER BY tenant_id LIMIT 1
