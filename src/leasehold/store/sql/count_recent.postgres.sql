-- count_recent: the same of the newest so many live jobs, by the order of an index. The range is all ids: without it the planner
-- would read and sort the whole table where it has no statistics, or does not know the number.
select queue, state, count(*), extract(epoch from {now} - min(run_at))::float8
from (
    select queue, state, run_at from {schema}.jobs
    where id >= coalesce(:lowest::text, '00000000-0000-0000-0000-000000000000')::uuid
      and id < coalesce(:before::text, 'ffffffff-ffff-ffff-ffff-ffffffffffff')::uuid
    order by id desc
    limit :most::integer
) newest
group by queue, state
