-- dependents: those of the jobs named that still wait for others, locked unless somebody else has them.
with live as materialized (
    select id, waits, policy from {schema}.jobs
    where id = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and waits > 0
),
free as materialized (
    select id from {schema}.jobs
    where id = any(array(select id from live)) and waits > 0
    order by id
    for update skip locked
)
select l.id::text, f.id is not null, l.waits, l.policy::text from live l left join free f on f.id = l.id
