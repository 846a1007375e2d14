-- Mark chains as watched, so that their end is announced. Returns those whose live job another transaction has locked.
with live as materialized (
    select id, chain, watched from {schema}.jobs
    where id = any(array(select json_array_elements_text(:chains::text::json)::uuid))
    union all
    select id, chain, watched from {schema}.jobs
    where chain = any(array(select json_array_elements_text(:chains::text::json)::uuid)) and "position" > 0
),
free as materialized (
    select j.id from {schema}.jobs j
    where j.id = any(array(select id from live where not watched))
    order by j.id
    for update skip locked
),
marked as (
    update {schema}.jobs j set watched = true from free f
    where j.id = f.id
    returning j.id
)
select l.chain::text from live l where not l.watched and not exists (select from marked m where m.id = l.id)
