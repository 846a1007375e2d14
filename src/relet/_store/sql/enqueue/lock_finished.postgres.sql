-- Lock the finished jobs of these chains, so that they are not pruned before this transaction ends: a job that is to
-- wait for them will find how they ended.
with named as materialized (
    select chain from {schema}.all_jobs where id = any(array(select json_array_elements_text(:ids::text::json)::uuid))
),
over as materialized (
    select f.id from {schema}.finished f where f.id = any(array(select chain from named))
    union all
    select f.id from {schema}.finished f where f.chain = any(array(select chain from named)) and f."position" > 0
)
select f.id::text from {schema}.finished f where f.id = any(array(select id from over)) order by f.id for key share
