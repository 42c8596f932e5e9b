INSERT INTO spaces (tenant_id, space_id, created_at) VALUES (?1, ?2, ?3)
