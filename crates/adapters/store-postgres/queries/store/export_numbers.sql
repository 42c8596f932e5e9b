SELECT of_what, last_value
FROM (
    SELECT CASE sequencename WHEN 'log_heads_tenant_number_seq' THEN 'tenants' WHEN 'audit_log_entry_id_seq' THEN 'audit' ELSE 'inboxes' END AS of_what,
        last_value
    FROM pg_sequences
    WHERE schemaname = current_schema() AND last_value IS NOT NULL
        AND sequencename IN ('log_heads_tenant_number_seq', 'audit_log_entry_id_seq', 'inbox_recipient_numbers')
) AS n
WHERE of_what > $1
ORDER BY of_what
LIMIT $2
