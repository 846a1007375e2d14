-- All schedules, or one by name, with the latest tick of each.
select s.name, s.definition, s.paused, s.next_at, s.declared is not null, t.tick, t.job, s.task
from {schema}.schedules s
left join {schema}.ticks t on t.schedule = s.name and t.job is not null
  and t.tick = (select max(tick) from {schema}.ticks where schedule = s.name and job is not null)
where :name is null or s.name = :name
order by s.name;
