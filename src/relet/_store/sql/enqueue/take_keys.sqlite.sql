-- Take keys. Returns the job that has each key now: the new job, unless another one holds it.
insert into {schema}.keys (key, job, until)
select json_extract(value, '$.key'), json_extract(value, '$.job'), {now} + json_extract(value, '$.window')
from json_each(:batch)
where true
on conflict (key) do nothing;

update {schema}.keys as keys
set job = json_extract(g.value, '$.job'), until = {now} + json_extract(g.value, '$.window')
from json_each(:batch) g
where keys.key = json_extract(g.value, '$.key')
  and (keys.until <= {now} or keys.job = json_extract(g.value, '$.heir_of'))
  and keys.job <> json_extract(g.value, '$.job');

select key, job from {schema}.keys where key in (select json_extract(value, '$.key') from json_each(:batch));
