SELECT count(*) FROM (
    SELECT 1 FROM inbox_items INDEXED BY inbox_items_claimable WHERE recipient_number = ?1 AND state = 0 LIMIT ?2
)
