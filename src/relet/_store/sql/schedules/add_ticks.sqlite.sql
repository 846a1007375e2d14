-- Insert ticks: the worker that inserts the row of a tick enqueues its job. Returns the jobs of the new ticks. Also
-- sets when the schedules are due next.
update {schema}.schedules
set next_at = (
        select json_extract(b.value, '$.next_at') from json_each(:moves) b
        where json_extract(b.value, '$.name') = name),
    moved_at = {now}
where name in (select json_extract(b.value, '$.name') from json_each(:moves) b);

insert into {schema}.ticks (schedule, tick, job, note)
select json_extract(b.value, '$.name'), json_extract(b.value, '$.at'), json_extract(b.value, '$.job'),
       json_extract(b.value, '$.note')
from json_each(:batch) b
where true
on conflict do nothing
returning job;
