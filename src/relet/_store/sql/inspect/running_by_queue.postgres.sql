-- How many jobs of each queue run now, expired leases included. (A range, not `is not null`, of which the
-- planner would expect all rows where it has no statistics.)
select queue, count(*) from {schema}.jobs where expires_at between '-infinity' and 'infinity' group by queue
