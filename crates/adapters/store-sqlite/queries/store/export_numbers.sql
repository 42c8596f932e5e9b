SELECT of_what, seq
FROM (
    SELECT CASE name WHEN 'log_heads' THEN 'tenants' WHEN 'audit_log' THEN 'audit' ELSE 'inboxes' END AS of_what, seq
    FROM sqlite_sequence
    WHERE name IN ('log_heads', 'audit_log', 'inbox_recipients') AND seq > 0
)
WHERE of_what > ?1
ORDER BY of_what
LIMIT ?2
