-- As this session has them, whoever set them: the server, the database, the role or the address.
SELECT current_setting('synchronous_commit') <> 'off', current_setting('fsync')::boolean, current_setting('server_encoding')
