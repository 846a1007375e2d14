-- tick_lives: of the latest ticks, the jobs that are neither over nor failed, or whose chains went on and are not.
with latest as materialized (
    select job from {schema}.ticks where schedule = :name::text and job is not null order by tick desc limit 100
)
select chain::text from {schema}.jobs where id = any(array(select job from latest)) and state <> 'failed'
union
select chain::text from {schema}.jobs where chain = any(array(select job from latest)) and "position" > 0 and state <> 'failed'
