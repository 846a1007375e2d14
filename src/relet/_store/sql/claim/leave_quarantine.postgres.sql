-- The right to empty a worker is free again.
update {schema}.quarantine set worker = null where worker = :worker::text
