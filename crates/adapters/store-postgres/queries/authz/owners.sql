SELECT count(*) FROM principals WHERE tenant_id = $1 AND role = 'owner' AND enabled
