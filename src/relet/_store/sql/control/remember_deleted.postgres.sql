-- Before jobs are deleted, store the ids of those that exist: a repeated enqueue whose answer was lost must not make
-- them again.
with given as materialized (
    select json_array_elements_text(:ids::text::json)::uuid as id
)
insert into {schema}.operations (id, verb, subject, at)
select f.id, 'delete', f.id::text, {now}
from (
    select id from {schema}.jobs where id = any(array(select id from given))
    union all
    select id from {schema}.finished where id = any(array(select id from given))
) f
on conflict (id) do nothing
