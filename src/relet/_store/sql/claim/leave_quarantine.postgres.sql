-- Give up the right to empty a worker.
update {schema}.quarantine set worker = null where worker = :worker::text
