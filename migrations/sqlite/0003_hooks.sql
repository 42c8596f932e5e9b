-- Hooks out: registrations, their keys, and the rings on their way.

-- hooks: whom to ring, how, and how that goes.

-- `queues` is a JSON array, absent while it is for every queue. `next_due` is the least `next_at` of the hook's rings, absent while it has none:
-- so that what is due is found without looking at each ring. The challenge's columns are all there or none.
CREATE TABLE hooks (
    hook_id              BLOB    NOT NULL PRIMARY KEY,
    tenant_id            TEXT    NOT NULL,
    agent_id             TEXT    NOT NULL,
    kind                 TEXT    NOT NULL,
    profile              TEXT    NOT NULL,
    url                  TEXT    NOT NULL,
    queues               TEXT,
    ignore_presence      INTEGER NOT NULL,
    max_rate_per_minute  INTEGER,
    state                TEXT    NOT NULL,
    disabled_cause       TEXT,
    challenge_delivery   TEXT,
    challenge_nonce      TEXT,
    challenge_text       TEXT,
    challenge_expires_at INTEGER,
    last_status          INTEGER,
    last_attempt_at      INTEGER,
    exhausted_in_row     INTEGER NOT NULL,
    since                INTEGER NOT NULL,
    created_at           INTEGER NOT NULL,
    next_due             INTEGER,
    FOREIGN KEY (tenant_id, agent_id) REFERENCES principals (tenant_id, principal_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX hooks_by_tenant ON hooks (tenant_id, hook_id);
CREATE INDEX hooks_by_agent ON hooks (tenant_id, agent_id, hook_id);
CREATE INDEX hooks_due ON hooks (tenant_id, next_due, hook_id) WHERE next_due IS NOT NULL;

-- Either `secret`, sealed, or `algorithm` and `public_key`.
CREATE TABLE hook_keys (
    hook_id    BLOB    NOT NULL REFERENCES hooks (hook_id) ON DELETE CASCADE,
    key_id     TEXT    NOT NULL,
    secret     BLOB,
    algorithm  TEXT,
    public_key BLOB,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (hook_id, key_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX hook_keys_by_expiry ON hook_keys (expires_at) WHERE expires_at IS NOT NULL;

-- Outstanding rings: what was delivered or given up is not here any more.
CREATE TABLE hook_deliveries (
    hook_id    BLOB    NOT NULL REFERENCES hooks (hook_id) ON DELETE CASCADE,
    webhook_id TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    cause      INTEGER NOT NULL,
    event_id   BLOB,
    queue      TEXT,
    attempts   INTEGER NOT NULL,
    next_at    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (hook_id, webhook_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX hook_deliveries_due ON hook_deliveries (hook_id, next_at, cause, webhook_id);

-- The last attempts of each hook. `number` counts up without a gap. `latency` is microseconds.
CREATE TABLE hook_attempts (
    hook_id    BLOB    NOT NULL REFERENCES hooks (hook_id) ON DELETE CASCADE,
    number     INTEGER NOT NULL,
    webhook_id TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    event_id   BLOB,
    attempt    INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    latency    INTEGER NOT NULL,
    status     INTEGER,
    class      TEXT    NOT NULL,
    PRIMARY KEY (hook_id, number)
) STRICT, WITHOUT ROWID;

-- How far each tenant's log was looked at.
CREATE TABLE hook_positions (
    tenant_id TEXT    NOT NULL PRIMARY KEY REFERENCES tenants (tenant_id),
    epoch     BLOB    NOT NULL,
    position  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Whoever took a group last has its generation. One process alone uses this store: all tenants are in group 0.
CREATE TABLE hook_groups (
    group_number INTEGER NOT NULL PRIMARY KEY,
    generation   INTEGER NOT NULL
) STRICT;

INSERT INTO hook_groups (group_number, generation) VALUES (0, 0);

-- The server's own signing keys; `pair` is sealed.
CREATE TABLE hook_server_keys (
    key_id     TEXT    NOT NULL PRIMARY KEY,
    public_key BLOB    NOT NULL,
    pair       BLOB    NOT NULL,
    signs_from INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
