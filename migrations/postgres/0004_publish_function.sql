-- Publishing within an application's own transaction: the application's rows and the event are committed together, or neither is.
--
-- `public.doorstep_publish` runs in the application's transaction, which may stay open for as long as it likes: it takes no lock that anybody waits
-- for. It neither touches the head row nor takes a deduplication key, and `log_staged` has no foreign key, because each would hold a lock until the
-- application commits. Committed rows are moved into the log by the server, which holds them against the same rules once more.

-- intake: what applications handed in, on its way into the log. `event` is the JSON object as it was handed in. Rows come and go.
CREATE TABLE log_staged (
    tenant_id TEXT COLLATE "C" NOT NULL,
    number    BIGINT GENERATED ALWAYS AS IDENTITY,
    event_id  UUID   NOT NULL,
    publisher TEXT COLLATE "C" NOT NULL,
    event     TEXT   NOT NULL,
    staged_at BIGINT NOT NULL,
    state     TEXT COLLATE "C" NOT NULL,
    failed_at BIGINT,
    failure   TEXT,
    PRIMARY KEY (tenant_id, number)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_insert_threshold = 500);

CREATE INDEX log_staged_waiting ON log_staged (tenant_id, number) WHERE state = 'waiting';
CREATE INDEX log_staged_failed ON log_staged (failed_at) WHERE state = 'failed';

-- What the servers hold events against, so that this door does too; they keep the row up to date. It begins with their defaults.
CREATE TABLE publish_limits (
    is_only             BOOLEAN NOT NULL PRIMARY KEY DEFAULT true CHECK (is_only),
    payload_bytes       BIGINT NOT NULL,
    depth               BIGINT NOT NULL,
    audience            BIGINT NOT NULL,
    recipients          BIGINT NOT NULL,
    correlation_entries BIGINT NOT NULL,
    correlation_chars   BIGINT NOT NULL,
    schedule_horizon    BIGINT NOT NULL
);

INSERT INTO publish_limits (payload_bytes, depth, audience, recipients, correlation_entries, correlation_chars, schedule_horizon)
VALUES (1048576, 64, 100, 100, 32, 256, 31622400000000);

-- Which roles may publish to which tenants. Whoever administers the database fills it.
CREATE TABLE public.doorstep_publishers (
    role   TEXT COLLATE "C" NOT NULL CHECK (role ~ '^[a-z0-9][a-z0-9_.-]{0,63}$' AND role <> 'server'),
    tenant TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (role, tenant)
);

REVOKE ALL ON public.doorstep_publishers FROM PUBLIC;

-- Whether a value is a text of so many characters without control characters.
CREATE FUNCTION publish_is_line(p_value JSONB, p_least BIGINT, p_most BIGINT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_typeof(p_value) = 'string' AND char_length(p_value #>> '{}') BETWEEN p_least AND p_most
        AND (p_value #>> '{}') COLLATE "C" !~ '[\u0001-\u001f\u007f-\u009f]'
$$;

-- Whether a value is a text of this form.
CREATE FUNCTION publish_is_like(p_value JSONB, p_form TEXT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_typeof(p_value) = 'string' AND (p_value #>> '{}') COLLATE "C" ~ p_form
$$;

-- An RFC 3339 date and time as microseconds since the Unix epoch; NULL for what is none.
CREATE FUNCTION publish_instant(p_value JSONB) RETURNS BIGINT LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF NOT doorstep.publish_is_like(
        p_value,
        '^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.,][0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-5][0-9])$'
    ) THEN
        RETURN NULL;
    END IF;
    RETURN (extract(EPOCH FROM translate(p_value #>> '{}', ',tz', '.TZ')::TIMESTAMPTZ) * 1000000)::BIGINT;
EXCEPTION
    WHEN data_exception THEN RETURN NULL;
END
$$;

-- What is wrong with the payload; NULL when nothing is.
CREATE FUNCTION publish_payload_fault(p_payload JSONB, p_bytes BIGINT, p_depth BIGINT) RETURNS TEXT LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF jsonb_typeof(p_payload) <> 'object' THEN
        RETURN 'a payload is a JSON object';
    END IF;
    IF octet_length(p_payload::TEXT) > p_bytes THEN
        RETURN octet_length(p_payload::TEXT) || ' bytes; a payload has at most ' || p_bytes;
    END IF;
    IF jsonb_path_exists(p_payload, format('strict $.**{%s to last} ? (@.type() == "object" || @.type() == "array")', p_depth)::JSONPATH) THEN
        RETURN 'nested too deeply';
    END IF;
    -- From here on a double is infinite.
    IF jsonb_path_exists(p_payload, 'strict $.** ? (@.type() == "number") ? (@ >= 179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497792 || @ <= -179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497792)') THEN
        RETURN 'a number is too large for any reader (IEEE 754)';
    END IF;
    RETURN NULL;
END
$$;

-- What is wrong with an event, after the JSON Pointer of the member; NULL when nothing is. The rules are those of the other doors.
CREATE FUNCTION publish_fault(p_event JSONB, p_now BIGINT) RETURNS TEXT LANGUAGE plpgsql STABLE AS $$
DECLARE
    c_name CONSTANT TEXT := '^[a-z0-9][a-z0-9_.-]{0,63}$';
    v_limits doorstep.publish_limits%ROWTYPE;
    v_name TEXT;
    v_value JSONB;
    v_place TEXT;
    v_agents TEXT[] := '{}';
    v_available BIGINT := p_now;
    v_instant BIGINT;
    v_fault TEXT;
BEGIN
    SELECT * INTO STRICT v_limits FROM doorstep.publish_limits;
    IF jsonb_typeof(p_event) <> 'object' THEN
        RETURN ': an event is a JSON object';
    END IF;
    FOR v_name, v_value IN SELECT m.key, m.value FROM jsonb_each(p_event) AS m LOOP
        v_place := '/' || replace(replace(v_name, '~', '~0'), '/', '~1') || ': ';
        IF v_name <> ALL (ARRAY['type', 'channel', 'audience', 'recipients', 'priority', 'available_at', 'expires_at', 'max_attempts', 'kind',
            'source', 'summary', 'deduplication_key', 'correlation', 'payload_ref', 'payload']) THEN
            RETURN v_place || 'no event has this member';
        ELSIF jsonb_typeof(v_value) = 'null' THEN
            RETURN v_place || 'null stands for nothing; leave the member out';
        END IF;
    END LOOP;
    IF NOT p_event ? 'type' THEN
        RETURN ': an event needs a type';
    ELSIF NOT doorstep.publish_is_like(p_event -> 'type', '^[a-z0-9_-]+([.][a-z0-9_-]+)*$') OR octet_length(p_event ->> 'type') > 128 THEN
        RETURN '/type: at most 128 characters: words of a-z, 0-9, _ and -, separated by single dots';
    ELSIF p_event ->> 'type' = ANY (ARRAY['access.changed', 'agent.updated', 'hook.disabled', 'inbox.dead_lettered', 'inbox.quarantined',
        'inbox.requeued', 'inbox.resumed', 'source.received']) THEN
        RETURN '/type: this type is the server''s own';
    END IF;
    IF NOT doorstep.publish_is_like(p_event -> 'channel', '^[a-z0-9][a-z0-9_.-]{0,63}/[a-z0-9][a-z0-9_.-]{0,63}$') THEN
        RETURN '/channel: space/channel, each a lowercase letter or digit, then at most 63 of a-z, 0-9, _, . and -';
    END IF;
    IF p_event ? 'audience' THEN
        IF jsonb_typeof(p_event -> 'audience') <> 'array' THEN
            RETURN '/audience: an array of principals';
        ELSIF jsonb_array_length(p_event -> 'audience') > v_limits.audience THEN
            RETURN '/audience: at most ' || v_limits.audience || ' principals';
        END IF;
        FOR v_place, v_value IN SELECT a.place - 1, a.value FROM jsonb_array_elements(p_event -> 'audience') WITH ORDINALITY AS a (value, place) LOOP
            IF NOT doorstep.publish_is_like(v_value, c_name) THEN
                RETURN '/audience/' || v_place || ': a lowercase letter or digit, then at most 63 of a-z, 0-9, _, . and -';
            END IF;
        END LOOP;
    END IF;
    IF p_event ? 'recipients' THEN
        IF jsonb_typeof(p_event -> 'recipients') <> 'array' THEN
            RETURN '/recipients: an array of recipients';
        ELSIF jsonb_array_length(p_event -> 'recipients') > v_limits.recipients THEN
            RETURN '/recipients: at most ' || v_limits.recipients || ' recipients';
        END IF;
        FOR v_place, v_value IN
            SELECT '/recipients/' || r.place - 1 || ': ', r.value FROM jsonb_array_elements(p_event -> 'recipients') WITH ORDINALITY AS r (value, place)
        LOOP
            IF jsonb_typeof(v_value) <> 'object' OR v_value - ARRAY['kind', 'id', 'queue'] <> '{}' THEN
                RETURN v_place || 'a recipient has a kind, an id and at most a queue';
            ELSIF v_value ->> 'kind' IS DISTINCT FROM 'agent' OR jsonb_typeof(v_value -> 'kind') <> 'string' THEN
                RETURN v_place || 'the kind of a recipient is agent';
            ELSIF doorstep.publish_is_like(v_value -> 'id', c_name) IS NOT TRUE THEN
                RETURN v_place || 'an id is a lowercase letter or digit, then at most 63 of a-z, 0-9, _, . and -';
            ELSIF NOT doorstep.publish_is_like(v_value -> 'queue', '^[a-z0-9][a-z0-9_-]{0,63}$') THEN
                RETURN v_place || 'a queue is a lowercase letter or digit, then at most 63 of a-z, 0-9, _ and -';
            ELSIF v_value ->> 'id' = ANY (v_agents) THEN
                RETURN v_place || 'named twice';
            END IF;
            v_agents := v_agents || (v_value ->> 'id');
        END LOOP;
    END IF;
    IF NOT p_event ? 'channel' AND coalesce(jsonb_array_length(p_event -> 'audience'), 0) = 0 AND cardinality(v_agents) = 0 THEN
        RETURN ': an event needs a channel, an audience or recipients';
    END IF;
    IF (SELECT count(*) FROM (SELECT jsonb_array_elements_text(coalesce(p_event -> 'audience', '[]')) UNION SELECT unnest(v_agents)) AS a)
        > v_limits.audience THEN
        RETURN '/audience: at most ' || v_limits.audience || ' principals, recipients included';
    END IF;
    IF NOT doorstep.publish_is_like(p_event -> 'priority', '^(low|normal|high|urgent)$') THEN
        RETURN '/priority: low, normal, high or urgent';
    END IF;
    IF p_event ? 'available_at' THEN
        v_instant := doorstep.publish_instant(p_event -> 'available_at');
        IF v_instant IS NULL THEN
            RETURN '/available_at: not an RFC 3339 date and time';
        END IF;
        v_available := greatest(v_instant, p_now);
        IF v_available - p_now > v_limits.schedule_horizon THEN
            RETURN '/available_at: further in the future than intake.schedule_horizon allows';
        END IF;
    END IF;
    IF p_event ? 'expires_at' THEN
        v_instant := doorstep.publish_instant(p_event -> 'expires_at');
        IF v_instant IS NULL THEN
            RETURN '/expires_at: not an RFC 3339 date and time';
        ELSIF v_instant <= v_available THEN
            RETURN '/expires_at: must lie in the future and after available_at';
        END IF;
    END IF;
    IF p_event ? 'max_attempts' AND (jsonb_typeof(p_event -> 'max_attempts') <> 'number' OR p_event ->> 'max_attempts' !~ '^[1-9][0-9]{0,9}$'
        OR (p_event ->> 'max_attempts')::NUMERIC > 4294967295) THEN
        RETURN '/max_attempts: a whole number, at least 1';
    END IF;
    FOREACH v_name IN ARRAY ARRAY['kind', 'source'] LOOP
        IF NOT doorstep.publish_is_line(p_event -> v_name, 1, 256) THEN
            RETURN '/' || v_name || ': 1 to 256 characters without control characters';
        END IF;
    END LOOP;
    IF p_event ? 'payload_ref' AND (jsonb_typeof(p_event -> 'payload_ref') <> 'object' OR (p_event -> 'payload_ref') - ARRAY['kind', 'id'] <> '{}'
        OR doorstep.publish_is_line(p_event -> 'payload_ref' -> 'kind', 1, 256) IS NOT TRUE
        OR doorstep.publish_is_line(p_event -> 'payload_ref' -> 'id', 1, 256) IS NOT TRUE) THEN
        RETURN '/payload_ref: an object with kind and id, each 1 to 256 characters without control characters';
    END IF;
    -- White space, control characters and those that only turn the text do not count.
    IF p_event ? 'summary' AND (jsonb_typeof(p_event -> 'summary') <> 'string' OR char_length(p_event ->> 'summary') > 200
        OR (p_event ->> 'summary') COLLATE "C" !~
            '[^\u0001-\u0020\u007f-\u00a0\u061c\u1680\u2000-\u200a\u200e\u200f\u2028\u2029\u202a-\u202e\u202f\u205f\u2066-\u2069\u3000]') THEN
        RETURN '/summary: 1 to 200 characters, not only white space';
    END IF;
    IF NOT doorstep.publish_is_line(p_event -> 'deduplication_key', 1, 256) THEN
        RETURN '/deduplication_key: 1 to 256 characters without control characters';
    END IF;
    IF p_event ? 'correlation' THEN
        IF jsonb_typeof(p_event -> 'correlation') <> 'object' THEN
            RETURN '/correlation: an object of texts';
        ELSIF (SELECT count(*) FROM jsonb_object_keys(p_event -> 'correlation')) > v_limits.correlation_entries THEN
            RETURN '/correlation: at most ' || v_limits.correlation_entries || ' members';
        END IF;
        FOR v_name, v_value IN SELECT m.key, m.value FROM jsonb_each(p_event -> 'correlation') AS m LOOP
            IF NOT doorstep.publish_is_line(to_jsonb(v_name), 1, v_limits.correlation_chars)
                OR NOT doorstep.publish_is_line(v_value, 0, v_limits.correlation_chars) THEN
                RETURN '/correlation: names of 1 to ' || v_limits.correlation_chars || ' characters and texts of at most '
                    || v_limits.correlation_chars || ', without control characters';
            END IF;
        END LOOP;
    END IF;
    IF p_event ? 'payload' THEN
        v_fault := doorstep.publish_payload_fault(p_event -> 'payload', v_limits.payload_bytes, v_limits.depth);
        IF v_fault IS NOT NULL THEN
            RETURN '/payload: ' || v_fault;
        END IF;
    END IF;
    RETURN NULL;
END
$$;

-- A UUIDv7 of this instant.
CREATE FUNCTION publish_id(p_micros BIGINT) RETURNS UUID LANGUAGE sql VOLATILE AS $$
    SELECT encode(
        set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING substring(int8send(p_micros / 1000) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex'
    )::UUID
$$;

REVOKE ALL ON FUNCTION publish_is_line(JSONB, BIGINT, BIGINT), publish_is_like(JSONB, TEXT), publish_instant(JSONB),
    publish_payload_fault(JSONB, BIGINT, BIGINT), publish_fault(JSONB, BIGINT), publish_id(BIGINT) FROM PUBLIC;

-- Hands an event in: it enters the log shortly after the calling transaction has committed, and never if it does not commit. Answers the event's id.
--
-- The caller's own role (`session_user`, which SET ROLE does not change) must be in `doorstep_publishers` for the tenant, unless it is a superuser; it
-- is the event's actor, an app. Runs with the rights of whoever installed it, so nothing here depends on what the caller has set: the search path is
-- fixed, and every name outside pg_catalog is qualified.
CREATE FUNCTION public.doorstep_publish(tenant TEXT, event JSONB) RETURNS UUID
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on
AS $$
DECLARE
    v_publisher CONSTANT TEXT := session_user;
    v_now CONSTANT BIGINT := (extract(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT;
    v_fault TEXT;
    v_id UUID;
BEGIN
    IF tenant IS NULL OR event IS NULL THEN
        RAISE EXCEPTION 'doorstep_publish: tenant and event must be given' USING ERRCODE = 'null_value_not_allowed';
    END IF;
    IF NOT EXISTS (SELECT 1 FROM public.doorstep_publishers AS p WHERE p.role = v_publisher AND p.tenant = doorstep_publish.tenant)
        AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles AS r WHERE r.rolname = v_publisher AND r.rolsuper) THEN
        RAISE EXCEPTION 'doorstep_publish: the role % may not publish to this tenant', quote_ident(v_publisher)
            USING ERRCODE = 'insufficient_privilege', HINT = 'An administrator of the database adds it to doorstep_publishers.';
    END IF;
    IF v_publisher COLLATE "C" !~ '^[a-z0-9][a-z0-9_.-]{0,63}$' OR v_publisher = 'server' THEN
        RAISE EXCEPTION 'doorstep_publish: the name of the role % cannot be that of an actor', quote_ident(v_publisher)
            USING ERRCODE = 'insufficient_privilege',
                HINT = 'A lowercase letter or digit, then at most 63 of a-z, 0-9, _, . and -; and not "server".';
    END IF;
    IF NOT EXISTS (SELECT 1 FROM doorstep.log_heads AS h WHERE h.tenant_id = doorstep_publish.tenant AND h.state = 'active') THEN
        RAISE EXCEPTION 'doorstep_publish: there is no such tenant, or it is suspended' USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    v_fault := doorstep.publish_fault(event, v_now);
    IF v_fault IS NOT NULL THEN
        RAISE EXCEPTION 'doorstep_publish: %', regexp_replace(v_fault, '^: ', '') USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF event ? 'channel' AND NOT EXISTS (
        SELECT 1 FROM doorstep.channels AS c
        WHERE c.tenant_id = doorstep_publish.tenant
            AND c.space_id = split_part(event ->> 'channel', '/', 1) AND c.channel_id = split_part(event ->> 'channel', '/', 2)
    ) THEN
        RAISE EXCEPTION 'doorstep_publish: /channel: there is no such channel' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT '/recipients/' || r.place - 1 INTO v_fault
    FROM jsonb_array_elements(event -> 'recipients') WITH ORDINALITY AS r (value, place)
    WHERE NOT EXISTS (
        SELECT 1 FROM doorstep.principals AS p
        WHERE p.tenant_id = doorstep_publish.tenant AND p.principal_id = r.value ->> 'id' AND p.kind = 'agent' AND p.enabled
    )
    ORDER BY r.place
    LIMIT 1;
    IF v_fault IS NOT NULL THEN
        RAISE EXCEPTION 'doorstep_publish: %: there is no such agent, or it is disabled', v_fault USING ERRCODE = 'invalid_parameter_value';
    END IF;
    v_id := doorstep.publish_id(v_now);
    INSERT INTO doorstep.log_staged (tenant_id, event_id, publisher, event, staged_at, state)
    VALUES (doorstep_publish.tenant, v_id, v_publisher, doorstep_publish.event::TEXT, v_now, 'waiting');
    RETURN v_id;
END
$$;

REVOKE ALL ON FUNCTION public.doorstep_publish(TEXT, JSONB) FROM PUBLIC;
