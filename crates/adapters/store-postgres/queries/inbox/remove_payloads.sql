DELETE FROM inbox_payloads AS p
USING UNNEST ($1::BIGINT[], $2::BIGINT[]) AS u (tenant_number, seq)
WHERE p.tenant_number = u.tenant_number AND p.seq = u.seq
