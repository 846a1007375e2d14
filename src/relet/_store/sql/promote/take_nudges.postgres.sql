-- What they point at is decided in later statements, which see all that was committed with them.
delete from {schema}.nudges
where id = any(array(select id from {schema}.nudges order by id limit :most::integer for update skip locked))
returning id, kind, key, beyond::text
