-- prune_details: what belonged to pruned jobs.
with ended as (
    delete from {schema}.attempts where job = any(array(select json_array_elements_text(:ids::text::json)::uuid))
),
stepped as (
    delete from {schema}.steps where job = any(array(select json_array_elements_text(:ids::text::json)::uuid))
),
told as (
    delete from {schema}.signals where job = any(array(select json_array_elements_text(:ids::text::json)::uuid))
)
delete from {schema}.edges where job = any(array(select json_array_elements_text(:ids::text::json)::uuid))
