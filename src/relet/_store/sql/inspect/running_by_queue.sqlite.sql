-- How many jobs of each queue run now, including those with expired leases.
select queue, count(*) from {schema}.jobs where expires_at is not null group by queue;
