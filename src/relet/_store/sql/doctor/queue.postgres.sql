-- The tasks of the first jobs in a queue: how many jobs of each, and for how many seconds they have been due. Jobs that
-- no worker claims end up first.
select first.task, count(*)::integer, max(extract(epoch from {now} - first.run_at))::float8
from (select task, run_at from {schema}.jobs where state = 'queued' and queue = :queue::text
      order by suspect, rank, seq limit :limit::integer) first
group by first.task
order by first.task
