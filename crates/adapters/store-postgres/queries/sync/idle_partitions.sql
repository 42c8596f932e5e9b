-- Tables of slots in which nobody's rows count any more, and whether they are attached still, or half.
SELECT part.slot, part.inhrelid IS NOT NULL, coalesce(part.inhdetachpending, false)
FROM (
    SELECT substr(c.relname, 11)::integer AS slot, i.inhrelid, i.inhdetachpending
    FROM pg_class AS c LEFT JOIN pg_inherits AS i ON i.inhrelid = c.oid AND i.inhparent = 'event_log'::regclass
    WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'event_log'::regclass) AND c.relkind = 'r' AND c.relname ~ '^event_log_[0-9]+$'
) AS part
WHERE part.slot < $1 AND NOT EXISTS (SELECT 1 FROM log_slots AS s WHERE s.slot = part.slot)
ORDER BY 1
