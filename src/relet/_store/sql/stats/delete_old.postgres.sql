-- What is so old, once it is counted in longer steps, or as old as can be.
delete from {schema}.stats where step = :step::integer and at < to_timestamp(:before::float8)
