-- count_recent: the same of the newest so many live jobs. By the order of an index: what was left of jobs that are gone is
-- not walked through.
select queue, state, count(*), extract(epoch from {now} - min(run_at))::float8
from (select queue, state, run_at from {schema}.jobs order by id desc limit :most::integer) newest
group by queue, state
