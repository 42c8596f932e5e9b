INSERT INTO store_meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING
