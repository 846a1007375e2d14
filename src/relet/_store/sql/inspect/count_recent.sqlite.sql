-- The same of the newest so many live jobs.
select queue, state, count(*), {now} - min(run_at)
from (select queue, state, run_at from {schema}.jobs order by id desc limit :most)
group by queue, state;
