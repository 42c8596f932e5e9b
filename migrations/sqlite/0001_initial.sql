-- The tables of the first release. A migration is never changed once it is released: a later one follows.

-- store: what every store keeps for itself.

CREATE TABLE store_meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- authz: who may do what.

CREATE TABLE tenants (
    tenant_id  TEXT    NOT NULL PRIMARY KEY,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE principals (
    tenant_id    TEXT    NOT NULL REFERENCES tenants (tenant_id),
    principal_id TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    role         TEXT    NOT NULL,
    display_name TEXT,
    enabled      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, principal_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX principals_enabled_owners ON principals (tenant_id) WHERE role = 'owner' AND enabled = 1;

CREATE TABLE tokens (
    tenant_id    TEXT    NOT NULL,
    token_id     BLOB    NOT NULL,
    principal_id TEXT    NOT NULL,
    hash         BLOB    NOT NULL UNIQUE,
    prefix       TEXT    NOT NULL,
    scopes       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    PRIMARY KEY (tenant_id, token_id),
    FOREIGN KEY (tenant_id, principal_id) REFERENCES principals (tenant_id, principal_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX tokens_by_principal ON tokens (tenant_id, principal_id, token_id);

CREATE TABLE spaces (
    tenant_id  TEXT    NOT NULL REFERENCES tenants (tenant_id),
    space_id   TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, space_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE channels (
    tenant_id  TEXT    NOT NULL,
    space_id   TEXT    NOT NULL,
    channel_id TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, space_id, channel_id),
    FOREIGN KEY (tenant_id, space_id) REFERENCES spaces (tenant_id, space_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE grants (
    tenant_id    TEXT    NOT NULL,
    grant_id     BLOB    NOT NULL,
    principal_id TEXT    NOT NULL,
    resource     TEXT    NOT NULL,
    permission   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, grant_id),
    UNIQUE (tenant_id, principal_id, resource, permission),
    FOREIGN KEY (tenant_id, principal_id) REFERENCES principals (tenant_id, principal_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX grants_by_resource ON grants (tenant_id, resource);

CREATE TABLE audit_log (
    entry_id   INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    tenant_id  TEXT    NOT NULL REFERENCES tenants (tenant_id),
    at         INTEGER NOT NULL,
    actor      TEXT,
    action     TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    decision   TEXT    NOT NULL,
    count      INTEGER NOT NULL,
    before     TEXT,
    after      TEXT,
    -- 1 for a line that counts what is alike in one minute.
    aggregated INTEGER NOT NULL
) STRICT;

CREATE INDEX audit_log_by_tenant ON audit_log (tenant_id, entry_id);
CREATE INDEX audit_log_by_age ON audit_log (at);
CREATE UNIQUE INDEX audit_log_aggregates ON audit_log (tenant_id, at, action, target, coalesce(actor, '')) WHERE aggregated = 1;

CREATE TABLE idempotency_keys (
    tenant_id    TEXT    NOT NULL,
    principal_id TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    request_hash BLOB    NOT NULL,
    status       INTEGER NOT NULL,
    body         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, principal_id, key),
    FOREIGN KEY (tenant_id, principal_id) REFERENCES principals (tenant_id, principal_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- sync: the log.

-- One row per tenant. `state` is the tenant's, here so that every append matches it. Numbers are never used again.
CREATE TABLE log_heads (
    tenant_number   INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    tenant_id       TEXT    NOT NULL UNIQUE REFERENCES tenants (tenant_id),
    state           TEXT    NOT NULL,
    head            INTEGER NOT NULL,
    floor           INTEGER NOT NULL,
    floor_raised_at INTEGER NOT NULL,
    -- Rows below `sweep_floor` may go a while after `sweep_raised_at`; it follows `floor` once they are gone.
    sweep_floor     INTEGER NOT NULL,
    sweep_raised_at INTEGER NOT NULL,
    epoch           BLOB    NOT NULL
) STRICT;

-- `position` is tenant_number << 43 | seq: one append-only tree, each tenant's rows side by side.
-- `body` is the envelope's text without its opening brace and its `seq`. `checksum` is CRC-32 over the position and every other column.
CREATE TABLE event_log (
    position   INTEGER NOT NULL PRIMARY KEY,
    id         BLOB    NOT NULL,
    type       TEXT    NOT NULL,
    channel    TEXT,
    audience   TEXT,
    origin     INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    body       TEXT    NOT NULL,
    checksum   INTEGER NOT NULL
) STRICT;

-- `seq` is absent while the event is scheduled.
CREATE TABLE deduplication_keys (
    tenant_number INTEGER NOT NULL,
    key           TEXT    NOT NULL,
    body_hash     BLOB    NOT NULL,
    event_id      BLOB    NOT NULL,
    seq           INTEGER,
    expires_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant_number, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX deduplication_keys_by_expiry ON deduplication_keys (expires_at) WHERE seq IS NOT NULL;

-- intake: events that wait for their time.

CREATE TABLE scheduled_events (
    tenant_id       TEXT    NOT NULL REFERENCES tenants (tenant_id),
    event_id        BLOB    NOT NULL,
    available_at    INTEGER NOT NULL,
    publisher       TEXT    NOT NULL,
    state           TEXT    NOT NULL,
    failure         TEXT,
    type            TEXT    NOT NULL,
    channel         TEXT,
    audience        TEXT,
    origin          INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    key             TEXT,
    body_hash       BLOB,
    key_expires_at  INTEGER,
    body            TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, event_id)
) STRICT;

CREATE INDEX scheduled_events_by_time ON scheduled_events (tenant_id, available_at, event_id);
CREATE INDEX scheduled_events_waiting ON scheduled_events (available_at, event_id) WHERE state = 'waiting';

-- agents: the durable cursors.

-- `holder_session_id` is the gateway session, the nil UUID for REST polls, absent when nobody holds the consumer.
CREATE TABLE agent_consumer_cursors (
    tenant_id         TEXT    NOT NULL,
    agent_id          TEXT    NOT NULL,
    consumer_name     TEXT    NOT NULL,
    acked_seq         INTEGER NOT NULL,
    epoch             BLOB    NOT NULL,
    holder_session_id BLOB,
    window_version    INTEGER NOT NULL,
    read_seq          INTEGER NOT NULL,
    sent_before       INTEGER NOT NULL,
    page_first        INTEGER NOT NULL,
    highest_sent      INTEGER NOT NULL,
    redeliver_up_to   INTEGER NOT NULL,
    in_flight         BLOB    NOT NULL,
    updated_at        INTEGER NOT NULL,
    taken_at          INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, agent_id, consumer_name),
    FOREIGN KEY (tenant_id, agent_id) REFERENCES principals (tenant_id, principal_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX agent_consumer_cursors_taken ON agent_consumer_cursors (taken_at);
