DROP TABLE event_log_{slot}
