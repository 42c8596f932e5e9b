-- Waiting for a synchronous standby must not be cut short: it would commit without it.
SELECT wait_event IS NOT DISTINCT FROM 'SyncRep' FROM pg_stat_activity
WHERE pid = $1 AND (extract(epoch FROM backend_start) * 1000000)::bigint = $2
