-- The inbox: claimable work.

-- inbox: recipients, items, and what is kept around them.

-- Who holds what, for how long. An inbox is locked by an advisory lock, class 1684631920, object the lower 31 bits of its number: exclusively by
-- whoever changes or counts it as a whole, shared by those who only take and end items, which lock those. Order: the inbox, items, the tenant's
-- row in log_heads, the row in inbox_recipients. Only who holds the row in log_heads writes inbox_recipients or inbox_queues, so a publisher, which
-- holds it first, waits for nobody.

-- A recipient's number is its tenant's, shifted left by 32 bits, and one of these. Numbers are never used again.
CREATE SEQUENCE inbox_recipient_numbers AS BIGINT MAXVALUE 4294967295 NO CYCLE;

-- `closed`: 0 open; 1 its agent is gone and items of it are still to be discarded; 2 nothing but ended items is left.
-- `presence`: 0 in, 1 out. `concurrency`: 0 many sessions, 1 a single one. `paused_queues` is a JSON array. No item has a `due_at` below
-- `due_floor`: scans begin there, above what is dead and cannot be removed yet.
CREATE TABLE inbox_recipients (
    tenant_number    BIGINT   NOT NULL,
    recipient_number BIGINT   NOT NULL,
    head             BIGINT   NOT NULL,
    next_due         BIGINT,
    due_floor        BIGINT   NOT NULL DEFAULT -9223372036854775807,
    presence_until   BIGINT,
    max_in_flight    BIGINT,
    closed           SMALLINT NOT NULL,
    presence         SMALLINT NOT NULL,
    concurrency      SMALLINT NOT NULL,
    paused           BOOLEAN  NOT NULL,
    agent_id         TEXT COLLATE "C" NOT NULL,
    paused_queues    TEXT,
    active_session   TEXT,
    PRIMARY KEY (tenant_number, recipient_number)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

CREATE UNIQUE INDEX inbox_recipients_open ON inbox_recipients (tenant_number, agent_id) WHERE closed = 0;
CREATE INDEX inbox_recipients_closed ON inbox_recipients (tenant_number, agent_id) WHERE closed > 0;
CREATE INDEX inbox_recipients_closing ON inbox_recipients (closed, recipient_number) WHERE closed > 0;
CREATE INDEX inbox_recipients_due ON inbox_recipients (next_due) WHERE next_due IS NOT NULL;

-- The queues of an inbox that may have claimable items, each with a lower bound of their `claim_key`: claims begin there, above what is dead and
-- cannot be removed while somebody else's transaction stays open. What is below is lowered by whoever writes a lower key.
CREATE TABLE inbox_queues (
    tenant_number    BIGINT NOT NULL,
    recipient_number BIGINT NOT NULL,
    claim_floor      BIGINT NOT NULL,
    queue            TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_number, recipient_number, queue)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

-- Items that have not ended. `state`: 0 available, 1 claimed, 2 retry scheduled, 5 dead letter, 6 quarantined. `dead_letter`: 0 none,
-- 1 dead-lettered, 2 quarantined, 3 redriven. `priority`: 0 low to 3 urgent. `is_current`: while `state` is 0, 1 or 2. `due_at`: when time will
-- next change it. `history` is JSON, absent while empty. Instants are microseconds since the Unix epoch, `backoff` is microseconds.
CREATE TABLE inbox_items (
    tenant_number     BIGINT   NOT NULL,
    recipient_number  BIGINT   NOT NULL,
    event_id          UUID     NOT NULL,
    inbox_seq         BIGINT   NOT NULL,
    ring_seq          BIGINT   NOT NULL,
    claim_key         BIGINT   NOT NULL,
    due_at            BIGINT,
    available_at      BIGINT   NOT NULL,
    expires_at        BIGINT,
    created_at        BIGINT   NOT NULL,
    generation        BIGINT   NOT NULL,
    max_attempts      BIGINT   NOT NULL,
    envelope_bytes    BIGINT   NOT NULL,
    delivery_attempts BIGINT   NOT NULL,
    counted_attempts  BIGINT   NOT NULL,
    lease_until       BIGINT,
    attempt_deadline  BIGINT,
    claimed_at        BIGINT,
    heartbeat_at      BIGINT,
    backoff           BIGINT,
    next_retry_at     BIGINT,
    state             SMALLINT NOT NULL,
    priority          SMALLINT NOT NULL,
    dead_letter       SMALLINT NOT NULL,
    is_current        BOOLEAN  NOT NULL,
    type              TEXT     NOT NULL,
    queue             TEXT COLLATE "C" NOT NULL,
    summary           TEXT     NOT NULL,
    kind              TEXT,
    source            TEXT,
    deduplication_key TEXT,
    session_id        TEXT,
    lease_hash        BYTEA,
    history           TEXT,
    PRIMARY KEY (tenant_number, recipient_number, event_id)
) WITH (
    fillfactor = 75, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 10000, vacuum_truncate = false
);

CREATE INDEX inbox_items_current ON inbox_items (tenant_number, recipient_number, ring_seq, event_id) WHERE is_current;
CREATE INDEX inbox_items_aside ON inbox_items (tenant_number, recipient_number, state, event_id) WHERE NOT is_current;
CREATE INDEX inbox_items_claimable ON inbox_items (tenant_number, recipient_number, queue, claim_key, event_id) WHERE state = 0;
CREATE INDEX inbox_items_due ON inbox_items (tenant_number, recipient_number, state, due_at, event_id) WHERE due_at IS NOT NULL;

-- Items that have ended: 3 acked, 4 expired, 7 discarded. Nothing but listings and repeated acknowledges reads them.
CREATE TABLE inbox_ended (
    tenant_number     BIGINT   NOT NULL,
    recipient_number  BIGINT   NOT NULL,
    event_id          UUID     NOT NULL,
    inbox_seq         BIGINT   NOT NULL,
    ring_seq          BIGINT   NOT NULL,
    claim_key         BIGINT   NOT NULL,
    available_at      BIGINT   NOT NULL,
    expires_at        BIGINT,
    created_at        BIGINT   NOT NULL,
    ended_at          BIGINT   NOT NULL,
    generation        BIGINT   NOT NULL,
    max_attempts      BIGINT   NOT NULL,
    envelope_bytes    BIGINT   NOT NULL,
    delivery_attempts BIGINT   NOT NULL,
    counted_attempts  BIGINT   NOT NULL,
    state             SMALLINT NOT NULL,
    priority          SMALLINT NOT NULL,
    dead_letter       SMALLINT NOT NULL,
    type              TEXT     NOT NULL,
    queue             TEXT COLLATE "C" NOT NULL,
    summary           TEXT     NOT NULL,
    kind              TEXT,
    source            TEXT,
    deduplication_key TEXT,
    lease_hash        BYTEA,
    history           TEXT,
    PRIMARY KEY (tenant_number, recipient_number, event_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);

-- Envelopes whose log row is gone or about to go while items still need them. `checksum` is CRC-32 over tenant, seq, id and body; `recipients` are
-- the inboxes that had an item when it was copied: it goes with the last of those.
CREATE TABLE inbox_payloads (
    tenant_number BIGINT   NOT NULL,
    seq           BIGINT   NOT NULL,
    event_id      UUID     NOT NULL,
    checksum      BIGINT   NOT NULL,
    recipients    BIGINT[] NOT NULL,
    body          TEXT     NOT NULL,
    PRIMARY KEY (tenant_number, seq)
);

-- The key of a tenant's lease tokens.
CREATE TABLE inbox_keys (
    tenant_number BIGINT NOT NULL PRIMARY KEY,
    lease_key     BYTEA  NOT NULL
);

-- What an `Idempotency-Key` of a claim stands for. `claims` is, for each item, the 16 bytes of the event and 8 of the generation, big-endian.
CREATE TABLE inbox_claims (
    tenant_number    BIGINT NOT NULL,
    recipient_number BIGINT NOT NULL,
    created_at       BIGINT NOT NULL,
    key              TEXT COLLATE "C" NOT NULL,
    request_hash     BYTEA  NOT NULL,
    claims           BYTEA  NOT NULL,
    PRIMARY KEY (tenant_number, recipient_number, key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000);

CREATE INDEX inbox_claims_by_age ON inbox_claims (created_at);

CREATE TABLE agent_sessions (
    tenant_id    TEXT COLLATE "C" NOT NULL,
    session_id   TEXT COLLATE "C" NOT NULL,
    agent_id     TEXT COLLATE "C" NOT NULL,
    device       TEXT,
    transport    TEXT    NOT NULL,
    connected_at BIGINT  NOT NULL,
    heartbeat_at BIGINT  NOT NULL,
    last_seen    BIGINT  NOT NULL,
    token_id     UUID    NOT NULL,
    is_active    BOOLEAN NOT NULL,
    PRIMARY KEY (tenant_id, session_id),
    FOREIGN KEY (tenant_id, agent_id) REFERENCES principals (tenant_id, principal_id) ON DELETE CASCADE
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

CREATE INDEX agent_sessions_by_agent ON agent_sessions (tenant_id, agent_id);
CREATE INDEX agent_sessions_by_age ON agent_sessions (heartbeat_at);

-- The row of an inbox, locked until the end of the transaction: shared or exclusively, as asked for. It is exclusive whatever is asked for when the
-- inbox has a limit, which makes claims depend on one another, and when something is due, so that `next_due` can be raised. No row: there is no such
-- tenant. A row without number: there is no such inbox, or the tenant is not served.
CREATE FUNCTION inbox_lock(p_tenant TEXT, p_agent TEXT, p_now BIGINT, p_exclusive BOOLEAN)
RETURNS TABLE (
    recipient_number BIGINT, agent_id TEXT, head BIGINT, next_due BIGINT, presence SMALLINT, presence_until BIGINT, paused BOOLEAN,
    paused_queues TEXT, max_in_flight BIGINT, concurrency SMALLINT, active_session TEXT, tenant_number BIGINT, tenant_state TEXT,
    is_exclusive BOOLEAN, lease_key BYTEA, due_floor BIGINT, queues TEXT[], claim_floors BIGINT[],
    log_floor BIGINT
)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    v_tenant BIGINT;
    v_state TEXT;
    v_number BIGINT;
    v_floor BIGINT;
    v_exclusive BOOLEAN;
    v_needed BOOLEAN;
BEGIN
    SELECT h.tenant_number, h.state, h.floor, r.recipient_number, coalesce(p_exclusive OR r.max_in_flight IS NOT NULL OR r.next_due <= p_now, p_exclusive)
    INTO v_tenant, v_state, v_floor, v_number, v_exclusive
    FROM log_heads AS h
    LEFT JOIN inbox_recipients AS r ON r.tenant_number = h.tenant_number AND r.agent_id = p_agent AND r.closed = 0
    WHERE h.tenant_id = p_tenant;
    IF v_tenant IS NULL THEN
        RETURN;
    END IF;
    IF v_number IS NOT NULL AND v_state = 'active' THEN
        IF v_exclusive THEN
            PERFORM pg_advisory_xact_lock(1684631920, (v_number & 2147483647)::INTEGER);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(1684631920, (v_number & 2147483647)::INTEGER);
        END IF;
        -- A snapshot of its own: what was committed while it waited is seen.
        RETURN QUERY
        SELECT r.recipient_number, r.agent_id, r.head, r.next_due, r.presence, r.presence_until, r.paused, r.paused_queues, r.max_in_flight,
            r.concurrency, r.active_session, v_tenant, v_state,
            v_exclusive, (SELECT k.lease_key FROM inbox_keys AS k WHERE k.tenant_number = v_tenant), r.due_floor,
            ARRAY(SELECT q.queue FROM inbox_queues AS q WHERE q.tenant_number = v_tenant AND q.recipient_number = v_number ORDER BY q.queue),
            ARRAY(SELECT q.claim_floor FROM inbox_queues AS q WHERE q.tenant_number = v_tenant AND q.recipient_number = v_number ORDER BY q.queue),
            v_floor
        FROM inbox_recipients AS r
        WHERE r.tenant_number = v_tenant AND r.recipient_number = v_number AND r.closed = 0;
        IF FOUND THEN
            SELECT NOT v_exclusive AND r.max_in_flight IS NOT NULL INTO v_needed
            FROM inbox_recipients AS r
            WHERE r.tenant_number = v_tenant AND r.recipient_number = v_number;
            IF v_needed THEN
                RAISE EXCEPTION 'a limit was set meanwhile' USING ERRCODE = 'serialization_failure';
            END IF;
            RETURN;
        END IF;
    END IF;
    RETURN QUERY
    SELECT NULL::BIGINT, NULL::TEXT, NULL::BIGINT, NULL::BIGINT, NULL::SMALLINT, NULL::BIGINT, NULL::BOOLEAN, NULL::TEXT, NULL::BIGINT,
        NULL::SMALLINT, NULL::TEXT, v_tenant, v_state, p_exclusive, NULL::BYTEA, NULL::BIGINT, NULL::TEXT[], NULL::BIGINT[], v_floor;
END
$$;

-- Whether somebody is still to work on an item of an event.
CREATE OR REPLACE FUNCTION log_work_is_current(p_tenant_number BIGINT, p_seq BIGINT, p_event_id UUID) RETURNS BOOLEAN LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1
        FROM event_log AS e
        CROSS JOIN LATERAL unnest(string_to_array(e.audience, ' ')) AS a (agent)
        JOIN inbox_recipients AS r ON r.tenant_number = p_tenant_number AND r.agent_id = a.agent AND r.closed = 0
        JOIN inbox_items AS i ON i.tenant_number = p_tenant_number AND i.recipient_number = r.recipient_number AND i.event_id = p_event_id
        WHERE e.tenant_number = p_tenant_number AND e.seq = p_seq AND e.id = p_event_id AND e.origin = 2 AND i.is_current
    ) OR EXISTS (
        SELECT 1
        FROM inbox_payloads AS p
        CROSS JOIN LATERAL unnest(p.recipients) AS u (recipient_number)
        JOIN inbox_recipients AS r ON r.tenant_number = p_tenant_number AND r.recipient_number = u.recipient_number AND r.closed = 0
        JOIN inbox_items AS i ON i.tenant_number = p_tenant_number AND i.recipient_number = u.recipient_number AND i.event_id = p_event_id
        WHERE p.tenant_number = p_tenant_number AND p.seq = p_seq AND p.event_id = p_event_id AND i.is_current
    );
END
$$;

-- Inserts the items that events leave. Called by the append, which holds the tenant's head row, with the events that are new and their positions, and
-- a JSON array of one object for each recipient of each publication that it was given. Those that are not new leave nothing.
CREATE OR REPLACE FUNCTION log_deliver(p_tenant_number BIGINT, p_ids UUID[], p_seqs BIGINT[], p_work JSON) RETURNS VOID
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    WITH arrivals AS MATERIALIZED (
        SELECT e.seq, w.*
        FROM json_to_recordset(p_work) AS w (
            event_id UUID, type TEXT, deduplication_key TEXT, created_at BIGINT, envelope_bytes BIGINT, agent TEXT, queue TEXT, kind TEXT, source TEXT,
            summary TEXT, priority SMALLINT, available_at BIGINT, claim_key BIGINT, expires_at BIGINT, max_attempts BIGINT
        )
        JOIN unnest(p_ids, p_seqs) AS e (id, seq) ON e.id = w.event_id
    ), inboxes AS MATERIALIZED (
        SELECT a.agent, max(a.seq) AS head, min(a.expires_at) AS due, max(r.recipient_number) AS known
        FROM arrivals AS a
        LEFT JOIN inbox_recipients AS r ON r.tenant_number = p_tenant_number AND r.agent_id = a.agent AND r.closed = 0
        GROUP BY a.agent
    ), made AS (
        INSERT INTO inbox_recipients (tenant_number, recipient_number, agent_id, closed, head, next_due, presence, paused, concurrency)
        SELECT p_tenant_number, p_tenant_number << 32 | nextval('inbox_recipient_numbers'), b.agent, 0, b.head, b.due, 0, false, 0
        FROM inboxes AS b
        WHERE b.known IS NULL
        RETURNING agent_id, recipient_number
    ), raised AS (
        UPDATE inbox_recipients AS r
        SET head = greatest(r.head, b.head), next_due = least(r.next_due, b.due), due_floor = least(r.due_floor, b.due)
        FROM inboxes AS b
        WHERE r.tenant_number = p_tenant_number AND r.recipient_number = b.known
    ), numbers AS MATERIALIZED (
        SELECT agent_id AS agent, recipient_number FROM made
        UNION ALL
        SELECT b.agent, b.known FROM inboxes AS b WHERE b.known IS NOT NULL
    ), keys AS MATERIALIZED (
        SELECT n.recipient_number, a.queue, min(a.claim_key) AS claim_floor
        FROM arrivals AS a
        JOIN numbers AS n ON n.agent = a.agent
        GROUP BY n.recipient_number, a.queue
    ), lowered AS (
        UPDATE inbox_queues AS q
        SET claim_floor = k.claim_floor
        FROM keys AS k
        WHERE q.tenant_number = p_tenant_number AND q.recipient_number = k.recipient_number AND q.queue = k.queue AND q.claim_floor > k.claim_floor
    ), opened AS (
        INSERT INTO inbox_queues (tenant_number, recipient_number, queue, claim_floor)
        SELECT p_tenant_number, k.recipient_number, k.queue, k.claim_floor
        FROM keys AS k
        WHERE NOT EXISTS (
            SELECT 1 FROM inbox_queues AS q
            WHERE q.tenant_number = p_tenant_number AND q.recipient_number = k.recipient_number AND q.queue = k.queue
        )
    )
    INSERT INTO inbox_items (
        tenant_number, recipient_number, event_id, inbox_seq, ring_seq, claim_key, due_at, available_at, expires_at, created_at, generation,
        max_attempts, envelope_bytes, delivery_attempts, counted_attempts, state, priority, dead_letter, is_current, type, queue, summary, kind,
        source, deduplication_key
    )
    SELECT p_tenant_number, n.recipient_number, a.event_id, a.seq, a.seq, a.claim_key, a.expires_at, a.available_at, a.expires_at, a.created_at, 0,
        a.max_attempts, a.envelope_bytes, 0, 0, 0, a.priority, 0, true, a.type, a.queue, a.summary, a.kind, a.source, a.deduplication_key
    FROM arrivals AS a
    JOIN numbers AS n ON n.agent = a.agent;
END
$$;
