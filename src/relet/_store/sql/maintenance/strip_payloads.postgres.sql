-- Remove payloads, results, errors, contexts, steps and signals of jobs that are over; their history stays.
with given as materialized (
    select json_array_elements_text(:ids::text::json)::uuid as id
),
stepped as (delete from {schema}.steps where job = any(array(select id from given))),
signalled as (delete from {schema}.signals where job = any(array(select id from given))),
failed as (
    update {schema}.attempts set error = null, error_type = null
    where job = any(array(select id from given)) and error is not null
)
update {schema}.finished set payload = 'null', result = null, error = null, error_type = null, context = null
where id = any(array(select id from given))
