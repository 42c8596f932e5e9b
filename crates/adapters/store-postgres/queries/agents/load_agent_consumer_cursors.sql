INSERT INTO agent_consumer_cursors (
    tenant_id, agent_id, consumer_name, acked_seq, epoch, holder_session_id, window_version, read_seq, sent_before, page_first,
    highest_sent, redeliver_up_to, in_flight, updated_at, taken_at
)
SELECT
    tenant_id, agent_id, consumer_name, acked_seq, epoch, holder_session_id, window_version, read_seq, sent_before, page_first,
    highest_sent, redeliver_up_to, in_flight, updated_at, taken_at
FROM unnest(
        $1::TEXT[], $2::TEXT[], $3::TEXT[], $4::BIGINT[], $5::UUID[], $6::UUID[], $7::BIGINT[], $8::BIGINT[], $9::BIGINT[],
        $10::BIGINT[], $11::BIGINT[], $12::BIGINT[], $13::BYTEA[], $14::BIGINT[], $15::BIGINT[]
    ) AS i (
        tenant_id, agent_id, consumer_name, acked_seq, epoch, holder_session_id, window_version, read_seq, sent_before, page_first,
        highest_sent, redeliver_up_to, in_flight, updated_at, taken_at
    )
