-- The head row, with every row of the range. `slot` is bounded by the map, so that only the partitions of the range are looked at; the sum stops a page
-- of large rows before they are sent.
WITH h AS MATERIALIZED (
    SELECT tenant_number, head, floor, epoch, state, greatest($2 + 1, floor) AS first, least(coalesce($3, head), head) AS last
    FROM log_heads WHERE tenant_id = $1
)
SELECT h.tenant_number, h.head, h.floor, h.epoch, h.state,
       e.seq, e.id, e.type, e.channel, e.audience, e.origin, e.created_at, e.body, e.checksum
FROM h LEFT JOIN (
    SELECT * FROM (
        SELECT l.*, sum(octet_length(l.body)) OVER (ORDER BY l.seq) - octet_length(l.body) AS preceding
        FROM (
            SELECT * FROM event_log
            WHERE tenant_number = (SELECT tenant_number FROM h) AND seq >= (SELECT first FROM h) AND seq <= (SELECT last FROM h)
              AND slot >= (SELECT max(s.slot) FROM log_slots AS s, h WHERE s.tenant_number = h.tenant_number AND s.first_seq <= h.first)
              AND slot <= (SELECT max(s.slot) FROM log_slots AS s, h WHERE s.tenant_number = h.tenant_number AND s.first_seq <= h.last)
            ORDER BY seq LIMIT $4
        ) AS l
    ) AS sized WHERE preceding <= $5
) AS e ON true
ORDER BY e.seq
