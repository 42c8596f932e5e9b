-- Nodes over this store, and which of them does what only one may do at a time. Instants are microseconds of the store's clock.

-- cluster: a row for each server process, from its start until it leaves or is forgotten.
CREATE TABLE nodes (
    node_id    UUID   NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    address    TEXT   NOT NULL,
    version    TEXT   NOT NULL,
    state      TEXT   NOT NULL,
    started_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);

-- `generation` counts how often the work was taken, and is never forgotten. Free while `node_id` is absent or `expires_at` has come.
CREATE TABLE work_leases (
    work       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    node_id    UUID,
    generation BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);
