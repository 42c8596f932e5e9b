SELECT event_id, audience FROM inbox_payloads WHERE position = ?1
