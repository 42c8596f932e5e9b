SELECT true FROM tenants LIMIT 1
