SELECT group_number FROM hook_groups ORDER BY group_number
