SELECT version, checksum FROM store_migrations ORDER BY version
