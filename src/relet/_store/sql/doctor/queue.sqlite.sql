-- The tasks of the jobs that are first in a queue: how many of each, and for how many seconds they have
-- been due. What nobody claims comes to stand in front.
select first.task, count(*), max({now} - first.run_at)
from (select task, run_at from {schema}.jobs where state = 'queued' and queue = :queue
      order by suspect, rank, seq limit :most) first
group by first.task
order by first.task;
