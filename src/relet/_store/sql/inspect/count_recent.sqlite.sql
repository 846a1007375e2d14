-- The newest live jobs, up to the limit, counted by queue and state, and for how many seconds the first has been due.
select queue, state, count(*), {now} - min(run_at)
from (select queue, state, run_at from {schema}.jobs order by id desc limit :limit)
group by queue, state;
