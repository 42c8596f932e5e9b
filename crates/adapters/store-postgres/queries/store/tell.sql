SELECT pg_notify('doorstep_hints', hints) FROM unnest($1::text[]) AS hints
