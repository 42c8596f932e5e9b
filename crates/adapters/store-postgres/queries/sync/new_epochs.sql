UPDATE log_heads SET epoch = gen_random_uuid()
