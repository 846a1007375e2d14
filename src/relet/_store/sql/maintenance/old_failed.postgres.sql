-- A batch of jobs that failed long ago and were not resumed, and how many rows belong to each, counted up to a limit.
with old as materialized (
    select id, attempt, losses, stopped_at from {schema}.jobs
    where state = 'failed' and stopped_at <= {now} - make_interval(secs => :seconds::float8)
    order by stopped_at
    limit :limit::integer
    for update skip locked
)
select o.id::text, o.attempt, o.losses,
       (select count(*) from (select from {schema}.attempts a where a.job = o.id limit :bound::integer) s)
       + (select count(*) from (select from {schema}.steps a where a.job = o.id limit :bound::integer) s)
       + (select count(*) from (select from {schema}.signals a where a.job = o.id limit :bound::integer) s)
       + (select count(*) from (select from {schema}.dependencies a where a.job = o.id limit :bound::integer) s)
from old o
order by o.stopped_at
