-- decide_edges: these dependencies are decided; the result is copied, for the blocker may be pruned.
with given as materialized (
    select b.job, b.blocker, b.state from json_to_recordset(:batch::text::json) as b(job uuid, blocker uuid, state text)
),
results as materialized (
    select f.chain, f.result from {schema}.finished f
    where f.id = any(array(select distinct blocker from given)) and not f.continued and f.state = 'succeeded'
    union all
    select f.chain, f.result from {schema}.finished f
    where f.chain = any(array(select distinct blocker from given)) and f."position" > 0 and not f.continued and f.state = 'succeeded'
)
update {schema}.edges e
set state = g.state, result = r.result
from given g left join results r on r.chain = g.blocker
where e.job = g.job and e.blocker = g.blocker
