-- nudge: put back what could not be decided yet.
insert into {schema}.nudges (kind, key)
select json_extract(value, '$.kind'), json_extract(value, '$.key') from json_each(:batch);
