-- Insert ticks: the worker that inserts the row of a tick enqueues its job. Returns the jobs of the new ticks. Also
-- sets when the schedules, locked by an earlier statement, are due next.
with moved as (
    update {schema}.schedules s set next_at = to_timestamp(b.next_at), moved_at = {now}
    from json_to_recordset(:moves::text::json) as b(name text, next_at float8)
    where s.name = b.name
)
insert into {schema}.ticks (schedule, tick, job, note)
select b.name, to_timestamp(b.at), b.job, b.note
from json_to_recordset(:batch::text::json) as b(name text, at float8, job uuid, note text)
on conflict do nothing
returning job::text
