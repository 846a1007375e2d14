-- Delete the row of a worker that has stopped, and the rows of workers that died.
delete from {schema}.sleepers where key = :key::integer or until < {now} - interval '1 hour'
