-- The value of a signal that was sent to a job.
select value::text from {schema}.signals where job = :job::text::uuid and name = :name::text
