-- oldest: for how many seconds the longest queued job of each queue has been due.
select queue, extract(epoch from {now} - min(run_at))::float8 from {schema}.jobs where state = 'queued' group by queue
