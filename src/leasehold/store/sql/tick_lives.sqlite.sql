-- tick_lives: of the latest ticks, the jobs that are neither over nor failed, or whose chains went on and are not.
with latest as (
    select job from {schema}.ticks where schedule = :name and job is not null order by tick desc limit 100
)
select chain from {schema}.jobs where id in (select job from latest) and state <> 'failed'
union
select chain from {schema}.jobs where chain in (select job from latest) and position > 0 and state <> 'failed';
