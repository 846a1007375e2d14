-- drop_keys: give back the keys that were taken for jobs which will not be.
delete from {schema}.keys where job = any(array(select json_array_elements_text(:ids::text::json)::uuid))
