-- Who has these keys, and whether only a window is left of that, which is over.
select key, job::text, (until <= {now}) is true from {schema}.keys
where key = any(array(select json_array_elements_text(:keys::text::json)))
