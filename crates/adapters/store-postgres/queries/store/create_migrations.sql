CREATE TABLE IF NOT EXISTS store_migrations (
    version    BIGINT NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    checksum   BIGINT NOT NULL,
    applied_at BIGINT NOT NULL
)
