UPDATE hook_groups SET generation = generation + 1 WHERE group_number = $1 RETURNING generation
