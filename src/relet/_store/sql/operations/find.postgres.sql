-- The answer of a change that was made under this id.
select verb, request, outcome::text from {schema}.operations where id = :id::text::uuid
