-- Time or jobs no longer hold these up, their target does. They stand where their enqueue put them.
update {schema}.jobs set wait = 'target', waits = 0
where id = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and state = 'pending'
