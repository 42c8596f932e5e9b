SELECT head, floor, epoch, tenant_number FROM log_append_new($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::TEXT::JSON)
