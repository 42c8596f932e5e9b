SELECT min(ring_seq) FROM inbox_items WHERE tenant_number = $1 AND recipient_number = $2 AND is_current
