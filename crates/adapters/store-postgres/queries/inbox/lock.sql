SELECT recipient_number, agent_id, head, next_due, presence, presence_until, paused, paused_queues, max_in_flight, concurrency, active_session,
    tenant_number, tenant_state, is_exclusive, lease_key, due_floor, queues, claim_floors, log_floor
FROM inbox_lock($1, $2, $3, $4)
