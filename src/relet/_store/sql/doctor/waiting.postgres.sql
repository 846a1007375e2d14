-- The tasks of the first jobs in each of these queues: how many jobs of each, and for how many seconds they have been
-- due. Jobs that no worker claims end up first.
select q.queue, first.task, count(*)::integer, max(extract(epoch from {now} - first.run_at))::float8
from unnest(:queues::text[]) q(queue)
cross join lateral (
    select j.task, j.run_at from {schema}.jobs j where j.state = 'queued' and j.queue = q.queue
    order by j.suspect, j.rank, j.seq limit :limit::integer
) first
group by q.queue, first.task
order by q.queue, first.task
