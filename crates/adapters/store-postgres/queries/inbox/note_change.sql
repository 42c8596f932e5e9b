-- What those who share an inbox write of it.
UPDATE inbox_recipients
SET head = greatest(head, $3), next_due = least(next_due, $4)
WHERE tenant_number = $1 AND recipient_number = $2
