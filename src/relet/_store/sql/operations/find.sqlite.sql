-- The answer of the change that was made under this id.
select verb, request, outcome from {schema}.operations where id = :id;
