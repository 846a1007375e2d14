-- take_keys: a key is free when nobody has it, or when its window is over. Waits for whoever is taking it just now.
insert into {schema}.keys (key, job, until)
select b.key, b.job, {now} + make_interval(secs => b."window")
from json_to_recordset(:batch::text::json) as b(key text, job uuid, "window" float8)
order by b.key
on conflict (key) do update set job = excluded.job, until = excluded.until
where keys.until is not null and keys.until <= {now}
returning key, job::text
