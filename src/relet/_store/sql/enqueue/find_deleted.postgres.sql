-- Those of the ids whose jobs were deleted lately, and when.
select id::text, extract(epoch from at)::float8 from {schema}.operations
where id = any(array(select json_array_elements_text(:ids::text::json)::uuid))
  and verb = 'delete' and subject = id::text
