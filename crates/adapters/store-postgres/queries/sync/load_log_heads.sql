-- What lies below the floor stays behind; the events that follow say in which slot the log is.
INSERT INTO log_heads (
    tenant_number, tenant_id, state, head, floor, floor_raised_at, sweep_floor, sweep_raised_at, swept, slot, epoch
) OVERRIDING SYSTEM VALUE
SELECT tenant_number, tenant_id, state, head, floor, floor_raised_at, floor, floor_raised_at, floor, 0, epoch
FROM unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::UUID[])
    AS i (tenant_number, tenant_id, state, head, floor, floor_raised_at, epoch)
