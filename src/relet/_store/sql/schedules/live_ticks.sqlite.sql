-- For the latest ticks of each schedule, the chains that are neither over nor failed.
with latest as (
    select n.value as name, t.value as job
    from json_each(:names) n, json_each((
        select json_group_array(job) from (
            select job from {schema}.ticks where schedule = n.value and job is not null order by tick desc limit 100
        )
    )) t
)
select l.name, j.chain from latest l cross join {schema}.jobs j on j.id = l.job where j.state <> 'failed'
union
select l.name, j.chain from latest l cross join {schema}.jobs j on j.chain = l.job
where j.position > 0 and j.state <> 'failed';
