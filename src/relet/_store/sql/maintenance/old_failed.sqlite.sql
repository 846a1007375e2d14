-- A batch of jobs that failed long ago and were not resumed, and how many rows belong to each, counted up to a limit.
select o.id, o.attempt, o.losses,
       (select count(*) from (select 1 from {schema}.attempts a where a.job = o.id limit :bound))
       + (select count(*) from (select 1 from {schema}.steps a where a.job = o.id limit :bound))
       + (select count(*) from (select 1 from {schema}.signals a where a.job = o.id limit :bound))
       + (select count(*) from (select 1 from {schema}.dependencies a where a.job = o.id limit :bound))
from {schema}.jobs o
where o.state = 'failed' and o.stopped_at <= {now} - :seconds
order by o.stopped_at
limit :limit;
