SELECT setval(
    CASE of_what
        WHEN 'tenants' THEN 'log_heads_tenant_number_seq'::regclass
        WHEN 'audit' THEN 'audit_log_entry_id_seq'::regclass
        ELSE 'inbox_recipient_numbers'::regclass
    END,
    last_value
)
FROM unnest($1::TEXT[], $2::BIGINT[]) AS n (of_what, last_value)
