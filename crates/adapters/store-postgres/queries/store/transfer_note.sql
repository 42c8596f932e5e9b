UPDATE store_meta SET value = $3 WHERE name = $1 AND value = $2
