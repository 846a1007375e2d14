-- Jobs that sleep until a signal comes, and whose signal has come, are due now. Returns those that another transaction
-- has locked.
with live as materialized (
    select j.id from {schema}.jobs j
    where j.id = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and j.wait = 'time'
      and exists (select from {schema}.signals s where s.job = j.id and s.name = j.awaits)
),
free as materialized (
    select j.id from {schema}.jobs j
    where j.id = any(array(select id from live)) and j.wait = 'time'
    order by j.id
    for update skip locked
),
woken as (
    update {schema}.jobs j set run_at = {now}, awaits = null from free f where j.id = f.id and j.run_at > {now}
)
select l.id::text from live l where not exists (select from free f where f.id = l.id)
