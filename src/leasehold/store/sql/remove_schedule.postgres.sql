-- remove_schedule: and the ticks it had.
with gone as (delete from {schema}.schedules where name = :name::text returning name),
ticked as (delete from {schema}.ticks t using gone g where t.schedule = g.name)
select name from gone
