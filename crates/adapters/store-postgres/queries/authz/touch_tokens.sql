-- Locked in one order for everybody, so that nodes that note the same tokens never wait in a circle.
WITH uses AS MATERIALIZED (
    SELECT u.tenant_id, u.token_id, max(u.at) AS at
    FROM unnest($1::text[], $2::uuid[], $3::bigint[]) AS u (tenant_id, token_id, at)
    GROUP BY u.tenant_id, u.token_id
), locked AS MATERIALIZED (
    SELECT t.tenant_id, t.token_id, u.at
    FROM uses AS u
    JOIN tokens AS t ON t.tenant_id = u.tenant_id AND t.token_id = u.token_id
    WHERE t.last_used_at IS NULL OR t.last_used_at < u.at
    ORDER BY t.tenant_id, t.token_id
    FOR NO KEY UPDATE OF t
)
UPDATE tokens AS t SET last_used_at = l.at
FROM locked AS l
WHERE t.tenant_id = l.tenant_id AND t.token_id = l.token_id
