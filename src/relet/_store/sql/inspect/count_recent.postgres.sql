-- The newest live jobs, up to the limit, counted by queue and state, and for how many seconds the first has been due.
select queue, state, count(*), extract(epoch from {now} - min(run_at))::float8
from {schema}.newest_jobs(:limit::integer)
group by queue, state
