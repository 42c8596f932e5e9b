-- Hooks out: registrations, their keys, and the rings on their way. Every key leads with the tenant; who knows a hook's id alone finds it by an index.

-- hooks: whom to ring, how, and how that goes.

-- `queues` is a JSON array, absent while it is for every queue. `next_due` is the least `next_at` of the hook's rings, absent while it has none:
-- so that what is due is found without looking at each ring. The challenge's columns are all there or none. `group_number` is the tenant's group,
-- which one node at a time works for; it follows from the tenant's name alone.
CREATE TABLE hooks (
    hook_id              UUID    NOT NULL,
    tenant_id            TEXT COLLATE "C" NOT NULL,
    agent_id             TEXT COLLATE "C" NOT NULL,
    kind                 TEXT    NOT NULL,
    profile              TEXT    NOT NULL,
    url                  TEXT    NOT NULL,
    queues               TEXT,
    ignore_presence      BOOLEAN NOT NULL,
    max_rate_per_minute  BIGINT,
    state                TEXT    NOT NULL,
    disabled_cause       TEXT,
    challenge_delivery   TEXT,
    challenge_nonce      TEXT,
    challenge_text       TEXT,
    challenge_expires_at BIGINT,
    last_status          INTEGER,
    last_attempt_at      BIGINT,
    exhausted_in_row     BIGINT  NOT NULL,
    since                BIGINT  NOT NULL,
    created_at           BIGINT  NOT NULL,
    next_due             BIGINT,
    group_number         INTEGER NOT NULL GENERATED ALWAYS AS (get_byte(sha256(tenant_id::bytea), 0) & 15) STORED,
    PRIMARY KEY (tenant_id, hook_id),
    FOREIGN KEY (tenant_id, agent_id) REFERENCES principals (tenant_id, principal_id) ON DELETE CASCADE
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

CREATE INDEX hooks_by_id ON hooks (hook_id);
CREATE INDEX hooks_by_agent ON hooks (tenant_id, agent_id, hook_id);
CREATE INDEX hooks_by_group ON hooks (group_number, tenant_id);
CREATE INDEX hooks_due ON hooks (group_number, next_due) WHERE next_due IS NOT NULL;

-- Either `secret`, sealed, or `algorithm` and `public_key`.
CREATE TABLE hook_keys (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    hook_id    UUID   NOT NULL,
    key_id     TEXT COLLATE "C" NOT NULL,
    secret     BYTEA,
    algorithm  TEXT,
    public_key BYTEA,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (tenant_id, hook_id, key_id),
    FOREIGN KEY (tenant_id, hook_id) REFERENCES hooks (tenant_id, hook_id) ON DELETE CASCADE
);

CREATE INDEX hook_keys_by_hook ON hook_keys (hook_id, key_id);
CREATE INDEX hook_keys_by_expiry ON hook_keys (expires_at) WHERE expires_at IS NOT NULL;

-- Outstanding rings: what was delivered or given up is not here any more. Rows live for seconds.
CREATE TABLE hook_deliveries (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    hook_id    UUID   NOT NULL,
    webhook_id TEXT COLLATE "C" NOT NULL,
    reason     TEXT   NOT NULL,
    cause      BIGINT NOT NULL,
    event_id   UUID,
    queue      TEXT COLLATE "C",
    attempts   BIGINT NOT NULL,
    next_at    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, hook_id, webhook_id),
    FOREIGN KEY (tenant_id, hook_id) REFERENCES hooks (tenant_id, hook_id) ON DELETE CASCADE
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX hook_deliveries_due ON hook_deliveries (tenant_id, hook_id, next_at, cause, webhook_id);

-- The last attempts of each hook. `number` counts up without a gap. `latency` is microseconds.
CREATE TABLE hook_attempts (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    hook_id    UUID    NOT NULL,
    number     BIGINT  NOT NULL,
    webhook_id TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    event_id   UUID,
    attempt    BIGINT  NOT NULL,
    at         BIGINT  NOT NULL,
    latency    BIGINT  NOT NULL,
    status     INTEGER,
    class      TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, hook_id, number),
    FOREIGN KEY (tenant_id, hook_id) REFERENCES hooks (tenant_id, hook_id) ON DELETE CASCADE
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

-- How far each tenant's log was looked at.
CREATE TABLE hook_positions (
    tenant_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES tenants (tenant_id),
    epoch     UUID   NOT NULL,
    position  BIGINT NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

-- Whoever took a group last has its generation: it alone moves the positions of the group's tenants. Several, so that nodes share the work.
CREATE TABLE hook_groups (
    group_number INTEGER NOT NULL PRIMARY KEY,
    generation   BIGINT  NOT NULL
) WITH (fillfactor = 50);

INSERT INTO hook_groups (group_number, generation) SELECT n, 0 FROM generate_series(0, 15) AS n;

-- The server's own signing keys; `pair` is sealed.
CREATE TABLE hook_server_keys (
    key_id     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    public_key BYTEA  NOT NULL,
    pair       BYTEA  NOT NULL,
    signs_from BIGINT NOT NULL
);
