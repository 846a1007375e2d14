-- The steps that attempts of a job have stored, and how many seconds of each wait are left.
select kind, name, result::text, extract(epoch from until - {now})::float8 from {schema}.steps
where job = :job::text::uuid
