SELECT value FROM store_meta WHERE name = $1
