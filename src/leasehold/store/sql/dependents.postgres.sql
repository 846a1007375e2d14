-- dependents: those of the jobs named that still wait for others, locked unless somebody else has them; and the chains of those
-- that went on with one.
with live as materialized (
    select id, waits, policy, case when "position" > 0 then chain end as chain from {schema}.jobs
    where id = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and waits > 0
),
free as materialized (
    select id from {schema}.jobs
    where id = any(array(select id from live)) and waits > 0
    order by id
    for update skip locked
)
select l.id::text, f.id is not null, l.waits, l.policy::text, l.chain::text from live l left join free f on f.id = l.id
