DELETE FROM store_meta WHERE name LIKE 'transfer.%'
