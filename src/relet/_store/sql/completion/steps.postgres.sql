-- What attempts of a job have kept, and how long what they wait for is ahead.
select kind, name, result::text, extract(epoch from until - {now})::float8 from {schema}.steps where job = :job::text::uuid
