UPDATE agent_sessions SET is_active = false
