-- The inbox: claimable work.

-- inbox: recipients, items, and what is kept around them.

-- `closed`: 0 open; 1 its agent is gone and items of it are still to be discarded; 2 nothing but ended items is left.
-- `presence`: 0 in, 1 out. `concurrency`: 0 many sessions, 1 a single one. `paused_queues` is a JSON array. Numbers are never used again.
CREATE TABLE inbox_recipients (
    recipient_number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    tenant_number    INTEGER NOT NULL,
    agent_id         TEXT    NOT NULL,
    closed           INTEGER NOT NULL,
    head             INTEGER NOT NULL,
    next_due         INTEGER,
    presence         INTEGER NOT NULL,
    presence_until   INTEGER,
    paused           INTEGER NOT NULL,
    paused_queues    TEXT,
    max_in_flight    INTEGER,
    concurrency      INTEGER NOT NULL,
    active_session   TEXT
) STRICT;

CREATE UNIQUE INDEX inbox_recipients_open ON inbox_recipients (tenant_number, agent_id) WHERE closed = 0;
CREATE INDEX inbox_recipients_closed ON inbox_recipients (tenant_number, agent_id) WHERE closed > 0;
CREATE INDEX inbox_recipients_closing ON inbox_recipients (closed, recipient_number) WHERE closed > 0;
CREATE INDEX inbox_recipients_due ON inbox_recipients (next_due) WHERE next_due IS NOT NULL;

-- Items that have not ended. `state`: 0 available, 1 claimed, 2 retry scheduled, 5 dead letter, 6 quarantined. `dead_letter`: 0 none,
-- 1 dead-lettered, 2 quarantined, 3 redriven. `priority`: 0 low to 3 urgent. `is_current`: 1 while `state` is 0, 1 or 2; a column of its own, so
-- that a claim does not touch the index of what is current. `due_at`: when time will next change it. `history` is JSON, absent while empty.
-- Instants are microseconds since the Unix epoch, `backoff` is microseconds.
CREATE TABLE inbox_items (
    recipient_number  INTEGER NOT NULL,
    event_id          BLOB    NOT NULL,
    is_current        INTEGER NOT NULL,
    state             INTEGER NOT NULL,
    ring_seq          INTEGER NOT NULL,
    claim_key         INTEGER NOT NULL,
    due_at            INTEGER,
    inbox_seq         INTEGER NOT NULL,
    type              TEXT    NOT NULL,
    kind              TEXT,
    source            TEXT,
    summary           TEXT    NOT NULL,
    queue             TEXT    NOT NULL,
    priority          INTEGER NOT NULL,
    deduplication_key TEXT,
    available_at      INTEGER NOT NULL,
    expires_at        INTEGER,
    max_attempts      INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    envelope_bytes    INTEGER NOT NULL,
    dead_letter       INTEGER NOT NULL,
    delivery_attempts INTEGER NOT NULL,
    counted_attempts  INTEGER NOT NULL,
    generation        INTEGER NOT NULL,
    lease_hash        BLOB,
    history           TEXT,
    lease_until       INTEGER,
    attempt_deadline  INTEGER,
    claimed_at        INTEGER,
    heartbeat_at      INTEGER,
    session_id        TEXT,
    backoff           INTEGER,
    next_retry_at     INTEGER,
    PRIMARY KEY (recipient_number, event_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX inbox_items_current ON inbox_items (recipient_number, ring_seq, event_id) WHERE is_current = 1;
CREATE INDEX inbox_items_aside ON inbox_items (recipient_number, state, event_id) WHERE is_current = 0;
CREATE INDEX inbox_items_claimable ON inbox_items (recipient_number, queue, claim_key, event_id) WHERE state = 0;
CREATE INDEX inbox_items_due ON inbox_items (recipient_number, state, due_at, event_id, queue) WHERE due_at IS NOT NULL;

-- Items that have ended: 3 acked, 4 expired, 7 discarded. Nothing but listings and repeated acknowledges reads them.
CREATE TABLE inbox_ended (
    recipient_number  INTEGER NOT NULL,
    event_id          BLOB    NOT NULL,
    state             INTEGER NOT NULL,
    ring_seq          INTEGER NOT NULL,
    claim_key         INTEGER NOT NULL,
    inbox_seq         INTEGER NOT NULL,
    type              TEXT    NOT NULL,
    kind              TEXT,
    source            TEXT,
    summary           TEXT    NOT NULL,
    queue             TEXT    NOT NULL,
    priority          INTEGER NOT NULL,
    deduplication_key TEXT,
    available_at      INTEGER NOT NULL,
    expires_at        INTEGER,
    max_attempts      INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    envelope_bytes    INTEGER NOT NULL,
    dead_letter       INTEGER NOT NULL,
    delivery_attempts INTEGER NOT NULL,
    counted_attempts  INTEGER NOT NULL,
    generation        INTEGER NOT NULL,
    lease_hash        BLOB,
    history           TEXT,
    ended_at          INTEGER NOT NULL,
    PRIMARY KEY (recipient_number, event_id)
) STRICT, WITHOUT ROWID;

-- Envelopes whose log row is gone or about to go while items still need them. `position` is as in the log, `needed_by` counts the items that
-- have not ended, `checksum` is CRC-32 over position, id and body.
CREATE TABLE inbox_payloads (
    position  INTEGER NOT NULL PRIMARY KEY,
    event_id  BLOB    NOT NULL,
    audience  TEXT    NOT NULL,
    needed_by INTEGER NOT NULL,
    checksum  INTEGER NOT NULL,
    body      TEXT    NOT NULL
) STRICT;

-- The key of a tenant's lease tokens.
CREATE TABLE inbox_keys (
    tenant_number INTEGER NOT NULL PRIMARY KEY,
    lease_key     BLOB    NOT NULL
) STRICT;

-- What an `Idempotency-Key` of a claim stands for. `claims` is, for each item, the 16 bytes of the event and 8 of the generation, big-endian.
CREATE TABLE inbox_claims (
    recipient_number INTEGER NOT NULL,
    key              TEXT    NOT NULL,
    request_hash     BLOB    NOT NULL,
    claims           BLOB    NOT NULL,
    created_at       INTEGER NOT NULL,
    PRIMARY KEY (recipient_number, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX inbox_claims_by_age ON inbox_claims (created_at);

CREATE TABLE agent_sessions (
    tenant_id    TEXT    NOT NULL,
    session_id   TEXT    NOT NULL,
    agent_id     TEXT    NOT NULL,
    device       TEXT,
    transport    TEXT    NOT NULL,
    connected_at INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    last_seen    INTEGER NOT NULL,
    token_id     BLOB    NOT NULL,
    is_active    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, session_id),
    FOREIGN KEY (tenant_id, agent_id) REFERENCES principals (tenant_id, principal_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX agent_sessions_by_agent ON agent_sessions (tenant_id, agent_id);
CREATE INDEX agent_sessions_by_age ON agent_sessions (heartbeat_at);

-- intake: what a scheduled event will leave in inboxes, as JSON.

ALTER TABLE scheduled_events ADD COLUMN work TEXT;
