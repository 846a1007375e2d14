-- The jobs that hold these keys, and whether a key is kept only by a window that has ended.
select key, job::text, (until <= {now}) is true from {schema}.keys
where key = any(array(select json_array_elements_text(:keys::text::json)))
