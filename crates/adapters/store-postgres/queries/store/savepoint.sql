SAVEPOINT request
