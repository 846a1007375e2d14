-- Delete nudges. Later statements decide about the jobs that they name.
delete from {schema}.nudges where id in (select id from {schema}.nudges order by id limit :limit)
returning id, kind, key, beyond;
