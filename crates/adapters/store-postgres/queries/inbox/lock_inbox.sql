SELECT pg_advisory_xact_lock(1684631920, ($1 & 2147483647)::INTEGER)
