SELECT tenant_id, epoch, position FROM hook_positions WHERE tenant_id = ?1
