-- Delete nudges. Later statements decide about the jobs that they name, and see everything that was committed with the
-- nudges.
delete from {schema}.nudges
where id = any(array(select id from {schema}.nudges order by id limit :limit::integer for update skip locked))
returning id, kind, key, beyond::text
