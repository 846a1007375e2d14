-- How many seconds ago maintenance last reached the store (null: never), and whether any job waits for a worker:
-- queued, due, or leased to one. Ordered, so that the planner takes the indexes and not the table.
select extract(epoch from {now} - nullif(p.touched_at, '-infinity'))::float8,
       coalesce(
           (select true from {schema}.jobs where state = 'queued' order by queue, suspect, rank, seq limit 1), false)
       or ((select run_at from {schema}.jobs where wait = 'time' order by run_at, seq limit 1) <= {now}) is true
       or coalesce((select true from {schema}.jobs where expires_at is not null order by expires_at limit 1), false)
from {schema}.pulse p
