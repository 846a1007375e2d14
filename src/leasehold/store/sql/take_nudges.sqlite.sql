-- take_nudges: what they point at is decided in later statements.
delete from nudges where id in (select id from nudges order by id limit :most)
returning kind, key;
