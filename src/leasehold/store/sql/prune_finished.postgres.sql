-- prune_finished: jobs that are over, locked by an earlier statement.
delete from {schema}.finished where id = any(array(select json_array_elements_text(:ids::text::json)::uuid))
