-- For the latest ticks of each schedule, the chains that are neither over nor failed.
with latest as materialized (
    select n.name, t.job
    from json_array_elements_text(:names::text::json) as n(name) cross join lateral (
        select job from {schema}.ticks where schedule = n.name and job is not null order by tick desc limit 100
    ) t
),
live as materialized (
    select id as job, chain from {schema}.jobs where id = any(array(select job from latest)) and state <> 'failed'
    union
    select chain, chain from {schema}.jobs
    where chain = any(array(select job from latest)) and "position" > 0 and state <> 'failed'
)
select distinct l.name, v.chain::text from latest l join live v on v.job = l.job
