-- Seconds until the next pending job is due, or the next job has to be cancelled because it has not started.
select least(
    (select extract(epoch from min(run_at) - {now})::float8 from {schema}.jobs where wait = 'time'),
    (select extract(epoch from min(start_by) - {now})::float8 from {schema}.jobs
     where start_by is not null and version = 0))
