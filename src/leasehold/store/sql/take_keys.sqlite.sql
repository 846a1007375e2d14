-- take_keys: a key is free when nobody has it, or when its window is over.
insert into keys (key, job, until)
select json_extract(value, '$.key'), json_extract(value, '$.job'), {now} + json_extract(value, '$.window')
from json_each(:batch)
where true
on conflict (key) do update set job = excluded.job, until = excluded.until
where keys.until is not null and keys.until <= {now}
returning key, job;
