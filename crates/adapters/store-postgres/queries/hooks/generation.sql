SELECT generation FROM hook_groups WHERE group_number = $1 FOR SHARE
