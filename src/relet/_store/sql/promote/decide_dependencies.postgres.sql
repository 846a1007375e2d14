-- Record that these dependencies are decided. Copies result and task, as the depends_on may be pruned.
with given as materialized (
    select b.job, b.depends_on, b.state from json_to_recordset(:batch::text::json) as b(job uuid, depends_on uuid,
        state text)
),
results as materialized (
    select f.chain, f.result from {schema}.finished f
    where f.id = any(array(select distinct depends_on from given)) and not f.continued and f.state = 'succeeded'
    union all
    select f.chain, f.result from {schema}.finished f
    where f.chain = any(array(select distinct depends_on from given)) and f."position" > 0 and not f.continued
      and f.state = 'succeeded'
),
tasks as materialized (
    select j.id, j.task from {schema}.jobs j where j.id = any(array(select distinct depends_on from given))
    union all
    select f.id, f.task from {schema}.finished f where f.id = any(array(select distinct depends_on from given))
)
update {schema}.dependencies d
set state = g.state, result = r.result, task = t.task
from given g left join results r on r.chain = g.depends_on left join tasks t on t.id = g.depends_on
where d.job = g.job and d.depends_on = g.depends_on
