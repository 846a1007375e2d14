-- take_keys: those that nobody has.
insert into {schema}.keys (key, job, until)
select json_extract(value, '$.key'), json_extract(value, '$.job'), {now} + json_extract(value, '$.window')
from json_each(:batch)
where true
on conflict (key) do nothing
returning key, job;
