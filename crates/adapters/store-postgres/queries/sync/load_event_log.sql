-- An event's slot is the day on which it was made, and not below that of its predecessor: the head row knows the last one. The partitions are there.
WITH input AS MATERIALIZED (
    SELECT i.*, greatest(h.slot, max(i.day) OVER (PARTITION BY i.tenant_number ORDER BY i.seq))::INTEGER AS slot
    FROM (
        SELECT u.*, u.created_at / 86400000000 AS day
        FROM unnest(
            $1::BIGINT[], $2::BIGINT[], $3::UUID[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::BIGINT[], $8::BIGINT[], $9::TEXT[], $10::BIGINT[]
        ) AS u (tenant_number, seq, id, type, channel, audience, origin, created_at, body, checksum)
    ) AS i
    JOIN log_heads AS h ON h.tenant_number = i.tenant_number
), slots AS (
    INSERT INTO log_slots (tenant_number, slot, first_seq)
    SELECT tenant_number, slot, min(seq) FROM input GROUP BY tenant_number, slot
    ON CONFLICT DO NOTHING
), moved AS (
    UPDATE log_heads AS h SET slot = n.slot
    FROM (SELECT tenant_number, max(slot) AS slot FROM input GROUP BY tenant_number) AS n
    WHERE h.tenant_number = n.tenant_number
)
INSERT INTO event_log (tenant_number, slot, seq, id, type, channel, audience, origin, created_at, body, checksum)
SELECT tenant_number, slot, seq, id, type, channel, audience, origin, created_at, body, log_mix(checksum, tenant_number, seq)
FROM input
