-- Those of the jobs that have stored steps.
select distinct job::text from {schema}.steps
where job = any(array(select json_array_elements_text(:ids::text::json)::uuid))
