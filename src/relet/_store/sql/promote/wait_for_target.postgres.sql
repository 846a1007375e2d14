-- These jobs wait for neither time nor other jobs, but for their target. Their position in line is that of their
-- enqueue.
update {schema}.jobs set wait = 'target', waits = 0
where id = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and state = 'pending'
