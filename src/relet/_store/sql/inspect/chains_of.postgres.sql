-- The chain of each job.
select id::text, chain::text from {schema}.all_jobs
where id = any(array(select json_array_elements_text(:ids::text::json)::uuid))
