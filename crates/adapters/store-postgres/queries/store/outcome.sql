SELECT pg_xact_status($1::xid8), pg_backend_pid()
