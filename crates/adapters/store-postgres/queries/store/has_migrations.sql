SELECT to_regclass('doorstep.store_migrations') IS NOT NULL
