-- sync: appending what nobody can have published before.

-- `log_append` for a batch without keys: nothing is compared, every publication is new. Locks the head row and writes the batch behind it in one pass.
--
-- One element per publication in each array. Answers nothing when the tenant is not there or not active, otherwise the head row as it is after the
-- batch: the positions of the batch are the last ones.
CREATE FUNCTION log_append_new(
    p_tenant TEXT, p_slot INTEGER,
    p_ids UUID[], p_types TEXT[], p_channels TEXT[], p_audiences TEXT[], p_origins SMALLINT[], p_created BIGINT[], p_bodies TEXT[],
    p_checksums BIGINT[],
    p_work JSON
) RETURNS TABLE (head BIGINT, floor BIGINT, epoch UUID, tenant_number BIGINT) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_head log_heads%ROWTYPE;
    v_slot INTEGER;
    v_count BIGINT := cardinality(p_ids);
BEGIN
    SELECT * INTO v_head FROM log_heads AS h WHERE h.tenant_id = p_tenant FOR UPDATE;
    IF NOT FOUND OR v_head.state <> 'active' THEN
        RETURN;
    END IF;
    v_slot := greatest(v_head.slot, p_slot);
    IF v_slot > v_head.slot THEN
        INSERT INTO log_slots (tenant_number, slot, first_seq) VALUES (v_head.tenant_number, v_slot, v_head.head + 1) ON CONFLICT DO NOTHING;
    END IF;
    INSERT INTO event_log (tenant_number, slot, seq, id, type, channel, audience, origin, created_at, body, checksum)
    SELECT v_head.tenant_number, v_slot, v_head.head + i.at, i.id, i.type, i.channel, i.audience, i.origin, i.created_at, i.body,
           log_mix(i.checksum, v_head.tenant_number, v_head.head + i.at)
    FROM unnest(p_ids, p_types, p_channels, p_audiences, p_origins, p_created, p_bodies, p_checksums)
        WITH ORDINALITY AS i (id, type, channel, audience, origin, created_at, body, checksum, at);
    IF p_work IS NOT NULL THEN
        PERFORM log_deliver(v_head.tenant_number, p_ids, ARRAY(SELECT v_head.head + g FROM generate_series(1, v_count) AS g), p_work);
    END IF;
    UPDATE log_heads AS h SET head = v_head.head + v_count, slot = v_slot WHERE h.tenant_number = v_head.tenant_number;
    RETURN QUERY SELECT v_head.head + v_count, v_head.floor, v_head.epoch, v_head.tenant_number;
END
$$;
