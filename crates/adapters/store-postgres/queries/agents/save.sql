-- What is to be written is locked, in one order for everybody, and compared with its holder once it is: a batch that waited for a take
-- sees the new holder. What is only to be verified is read.
WITH wanted AS MATERIALIZED (
    SELECT w.tenant_id, w.agent_id, w.consumer_name, w.holder, max(w.acked) AS acked
    FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bigint[]) AS w (tenant_id, agent_id, consumer_name, holder, acked)
    GROUP BY w.tenant_id, w.agent_id, w.consumer_name, w.holder
), held AS MATERIALIZED (
    SELECT c.tenant_id, c.agent_id, c.consumer_name, c.holder_session_id, c.acked_seq, w.acked
    FROM wanted AS w
    JOIN agent_consumer_cursors AS c
        ON c.tenant_id = w.tenant_id AND c.agent_id = w.agent_id AND c.consumer_name = w.consumer_name
        AND c.holder_session_id = w.holder
    WHERE w.acked IS NOT NULL
    ORDER BY c.tenant_id, c.agent_id, c.consumer_name
    FOR NO KEY UPDATE OF c
), saved AS (
    UPDATE agent_consumer_cursors AS c
    SET acked_seq = h.acked, updated_at = $6
    FROM held AS h
    WHERE c.tenant_id = h.tenant_id AND c.agent_id = h.agent_id AND c.consumer_name = h.consumer_name AND h.acked > h.acked_seq
)
SELECT tenant_id, agent_id, consumer_name, holder_session_id, greatest(acked_seq, acked) FROM held
UNION ALL
SELECT c.tenant_id, c.agent_id, c.consumer_name, c.holder_session_id, c.acked_seq
FROM wanted AS w
JOIN agent_consumer_cursors AS c
    ON c.tenant_id = w.tenant_id AND c.agent_id = w.agent_id AND c.consumer_name = w.consumer_name
    AND c.holder_session_id = w.holder
WHERE w.acked IS NULL
