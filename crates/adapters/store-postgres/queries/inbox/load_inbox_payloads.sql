INSERT INTO inbox_payloads (tenant_number, seq, event_id, recipients, body, checksum)
SELECT tenant_number, seq, event_id, ARRAY(SELECT tenant_number << 32 | r::BIGINT FROM unnest(string_to_array(recipients, ',')) AS r), body, checksum
FROM unnest($1::BIGINT[], $2::BIGINT[], $3::UUID[], $4::TEXT[], $5::TEXT[], $6::BIGINT[])
    AS i (tenant_number, seq, event_id, recipients, body, checksum)
