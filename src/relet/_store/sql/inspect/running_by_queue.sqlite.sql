-- How many jobs of each queue run now, expired leases included.
select queue, count(*) from {schema}.jobs where expires_at is not null group by queue;
