SELECT principal_id FROM principals WHERE tenant_id = $1 AND principal_id = ANY ($2::TEXT[]) AND kind = 'agent' AND enabled
