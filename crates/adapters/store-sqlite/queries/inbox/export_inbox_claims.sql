SELECT r.tenant_number, i.recipient_number, i.key, i.request_hash, i.claims, i.created_at
FROM inbox_claims AS i
LEFT JOIN inbox_recipients AS r ON r.recipient_number = i.recipient_number
WHERE (i.recipient_number, i.key) > (?1, ?2)
ORDER BY i.recipient_number, i.key
LIMIT ?3
