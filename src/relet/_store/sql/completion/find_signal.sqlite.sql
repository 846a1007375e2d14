-- The value of a signal that was sent to a job.
select value from {schema}.signals where job = :job and name = :name;
