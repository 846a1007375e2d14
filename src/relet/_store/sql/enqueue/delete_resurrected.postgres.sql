-- An id was enqueued twice, and its first job finished between our read and our insert: delete the new row.
with revived as materialized (
    select f.id from {schema}.finished f
    where f.id = any(array(select json_array_elements_text(:ids::text::json)::uuid))
),
again as materialized (
    select j.id, j.unique_key from {schema}.jobs j where j.id = any(array(select id from revived))
),
unnudged as (delete from {schema}.nudges where kind = 'job' and key = any(array(select id::text from revived))),
unlinked as (delete from {schema}.dependencies where job = any(array(select id from revived))),
unkeyed as (
    delete from {schema}.keys
    where key = any(array(select unique_key from again)) and job = any(array(select id from revived)) and until is null
)
delete from {schema}.jobs where id = any(array(select id from revived))
returning id::text
