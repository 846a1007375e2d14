-- Delete old ticks whose jobs, and the jobs that continued their chains, are over.
with old as materialized (
    select schedule, tick from {schema}.ticks t
    where tick < {now} - make_interval(secs => :seconds::float8)
      and not exists (select from {schema}.jobs j where j.id = t.job)
      and not exists (select from {schema}.jobs j where j.chain = t.job and j."position" > 0)
    order by schedule, tick limit :limit::integer for update skip locked
)
delete from {schema}.ticks t using old o where t.schedule = o.schedule and t.tick = o.tick returning t.schedule
