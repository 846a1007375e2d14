-- The newest live jobs, up to the limit, counted by queue and state, and for how many seconds the first has been due.
select queue, state::text, count(*), extract(epoch from {now} - min(run_at))::float8
from (select queue, state, run_at from {schema}.jobs order by id desc limit :limit::integer) newest
group by queue, state
