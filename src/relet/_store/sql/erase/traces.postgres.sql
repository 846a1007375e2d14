-- Remove what other tables hold of these deleted jobs: copies of results, keys, details of audited actions, answers.
with given as materialized (
    select json_array_elements_text(:ids::text::json) as id
),
results as (
    update {schema}.dependencies set result = null
    where depends_on = any(array(select json_array_elements_text(:chains::text::json)::uuid)) and result is not null
),
unkeyed as (
    delete from {schema}.keys
    where key = any(array(select json_array_elements_text(:keys::text::json)))
      and job = any(array(select id::uuid from given))
),
answers as (delete from {schema}.operations where subject = any(array(select id from given)))
update {schema}.audit set detail = null where subject = any(array(select id from given))
