-- count_recent: the same of the newest so many live jobs, by the order of an index.
select queue, state, count(*), {now} - min(run_at)
from (
    select queue, state, run_at from {schema}.jobs
    where id >= coalesce(:lowest, '') and id < coalesce(:before, 'g')
    order by id desc
    limit :most
)
group by queue, state;
