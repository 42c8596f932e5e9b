DELETE FROM audit_log WHERE entry_id IN (SELECT entry_id FROM audit_log WHERE at < ?1 ORDER BY at LIMIT ?2)
