-- add_ticks: whoever adds the row of a tick is the one who enqueues its job. Returns the jobs of those that are new.
insert into {schema}.ticks (schedule, tick, job, note)
select b.name, to_timestamp(b.at), b.job, b.note
from json_to_recordset(:batch::text::json) as b(name text, at float8, job uuid, note text)
on conflict do nothing
returning job::text
