-- Record that these dependencies are decided. Copies result and task, as the blocker may be pruned.
with given as materialized (
    select b.job, b.blocker, b.state from json_to_recordset(:batch::text::json) as b(job uuid, blocker uuid, state text)
),
results as materialized (
    select f.chain, f.result from {schema}.finished f
    where f.id = any(array(select distinct blocker from given)) and not f.continued and f.state = 'succeeded'
    union all
    select f.chain, f.result from {schema}.finished f
    where f.chain = any(array(select distinct blocker from given)) and f."position" > 0 and not f.continued
      and f.state = 'succeeded'
),
tasks as materialized (
    select j.id, j.task from {schema}.jobs j where j.id = any(array(select distinct blocker from given))
    union all
    select f.id, f.task from {schema}.finished f where f.id = any(array(select distinct blocker from given))
)
update {schema}.edges e
set state = g.state, result = r.result, task = t.task
from given g left join results r on r.chain = g.blocker left join tasks t on t.id = g.blocker
where e.job = g.job and e.blocker = g.blocker
