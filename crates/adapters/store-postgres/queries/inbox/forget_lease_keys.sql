DELETE FROM inbox_keys
