-- What they point at is decided in later statements.
delete from {schema}.nudges where id in (select id from {schema}.nudges order by id limit :most)
returning id, kind, key, beyond;
