SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = $1 AND (extract(epoch FROM backend_start) * 1000000)::bigint = $2 AND wait_event IS DISTINCT FROM 'SyncRep'
