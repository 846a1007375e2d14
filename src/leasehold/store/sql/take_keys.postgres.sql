-- take_keys: those that nobody has. Waits for whoever is taking one just now, and locks none that is taken.
insert into {schema}.keys (key, job, until)
select b.key, b.job, {now} + make_interval(secs => b."window")
from json_to_recordset(:batch::text::json) as b(key text, job uuid, "window" float8)
order by b.key
on conflict (key) do nothing
returning key, job::text
