-- How many jobs of each queue run now, including those with expired leases. (A range, not `is not null`: without
-- statistics, the planner would expect all rows of that.)
select queue, count(*) from {schema}.jobs where expires_at between '-infinity' and 'infinity' group by queue
