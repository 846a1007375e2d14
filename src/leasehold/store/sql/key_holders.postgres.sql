-- key_holders: who has the keys that could not be taken.
select key, job::text from {schema}.keys
where key = any(array(select json_array_elements_text(:keys::text::json)))
  and (until is null or until > {now})
