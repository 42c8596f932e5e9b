SELECT verdict, seq, id, head, floor, epoch, tenant_number
FROM log_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17::TEXT::JSON)
