-- The same of the newest so many live jobs.
select queue, state, count(*), extract(epoch from {now} - min(run_at))::float8
from {schema}.newest_jobs(:most::integer)
group by queue, state
