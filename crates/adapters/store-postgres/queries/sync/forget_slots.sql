-- Partitions in which every row of this tenant is given up: the following one begins below, or nothing is left and nothing can be added any more.
DELETE FROM log_slots AS s
WHERE s.tenant_number = $1
  AND (EXISTS (SELECT 1 FROM log_slots AS n WHERE n.tenant_number = $1 AND n.slot > s.slot AND n.first_seq <= $2) OR ($2 > $3 AND s.slot < $4))
