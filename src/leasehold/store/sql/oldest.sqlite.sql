-- oldest: for how many seconds the longest queued job of each queue has been due.
select queue, {now} - min(run_at) from {schema}.jobs where state = 'queued' group by queue;
