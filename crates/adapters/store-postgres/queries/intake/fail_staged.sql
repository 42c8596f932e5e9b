UPDATE log_staged AS s
SET state = 'failed', failed_at = $2, failure = f.failure
FROM UNNEST($3::BIGINT[], $4::TEXT[]) AS f (number, failure)
WHERE s.tenant_id = $1 AND s.number = f.number AND s.state = 'waiting'
