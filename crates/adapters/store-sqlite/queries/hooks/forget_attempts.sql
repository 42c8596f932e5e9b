DELETE FROM hook_attempts
WHERE hook_id = ?1 AND number <= (SELECT max(number) FROM hook_attempts WHERE hook_id = ?1) - ?2
