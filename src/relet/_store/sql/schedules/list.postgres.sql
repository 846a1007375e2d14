-- All schedules, or one by name, with the latest tick of each.
select s.name, s.definition::text, s.paused, extract(epoch from s.next_at)::float8, s.declared is not null,
       extract(epoch from t.tick)::float8, t.job::text, s.task
from {schema}.schedules s
left join lateral (
    select tick, job from {schema}.ticks where schedule = s.name and job is not null order by tick desc limit 1
) t on true
where :name::text is null or s.name = :name::text
order by s.name
