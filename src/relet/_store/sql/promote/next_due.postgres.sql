-- Seconds until the next pending job is due.
select extract(epoch from min(run_at) - {now})::float8 from {schema}.jobs where wait = 'time'
