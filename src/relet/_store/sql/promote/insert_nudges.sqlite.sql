-- Note what is to be decided, in the order given.
insert into {schema}.nudges (kind, key, beyond)
select json_extract(value, '$.kind'), json_extract(value, '$.key'), json_extract(value, '$.beyond') from json_each(:batch);
