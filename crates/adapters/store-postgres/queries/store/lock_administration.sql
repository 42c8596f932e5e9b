SELECT pg_advisory_xact_lock(hashtextextended('doorstep.administration:' || $1, 0))
