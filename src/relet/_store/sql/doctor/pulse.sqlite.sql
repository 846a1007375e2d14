-- How many seconds ago maintenance last reached the store (null: never), and whether any job waits for a worker:
-- queued, due, or leased to one.
select case when p.touched_at > 0 then {now} - p.touched_at end,
       exists (select 1 from {schema}.jobs where state = 'queued')
       or exists (select 1 from {schema}.jobs where wait = 'time' and run_at <= {now})
       or exists (select 1 from {schema}.jobs where expires_at is not null)
from {schema}.pulse p;
