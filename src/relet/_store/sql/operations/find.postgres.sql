-- The answer of the change that was made under this id.
select verb, request, outcome::text from {schema}.operations where id = :id::text::uuid
