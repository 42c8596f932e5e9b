DELETE FROM scheduled_events WHERE tenant_id = ?1 AND event_id = ?2
