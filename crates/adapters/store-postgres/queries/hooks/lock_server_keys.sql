SELECT pg_advisory_xact_lock(hashtextextended('doorstep.hook_server_keys', 0))
