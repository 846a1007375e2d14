-- The tasks of the first jobs in each of these queues: how many jobs of each, and for how many seconds they have been
-- due. Jobs that no worker claims end up first.
select j.queue, j.task, count(*), max({now} - j.run_at)
from json_each(:queues) q
cross join {schema}.jobs j on j.rowid in (
    select f.rowid from {schema}.jobs f where f.state = 'queued' and f.queue = q.value
    order by f.suspect, f.rank, f.seq limit :limit)
group by j.queue, j.task
order by j.queue, j.task;
