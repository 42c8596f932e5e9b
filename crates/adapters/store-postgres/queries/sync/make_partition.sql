SELECT log_make_partition(slot) FROM unnest($1::integer[]) AS slot
