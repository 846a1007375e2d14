-- drop_revived: an id given twice, whose first job finished between our look and our insert, must not live again.
with revived as materialized (
    select f.id from {schema}.finished f
    where f.id = any(array(select json_array_elements_text(:ids::text::json)::uuid))
),
unnudged as (delete from {schema}.nudges n using revived r where n.kind = 'after' and n.key = r.id::text),
unlinked as (delete from {schema}.edges e using revived r where e.job = r.id),
unkeyed as (delete from {schema}.keys k using revived r where k.job = r.id and k.until is null)
delete from {schema}.jobs j using revived r where j.id = r.id
returning j.id::text
