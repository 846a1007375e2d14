-- Those of the jobs that still wait for others; the chain of each that continues one; and the columns that decide where
-- it goes next: whether its time has come, and its target.
select id, 1, waits, policy, case when position > 0 then chain end,
       state = 'pending' and run_at <= {now}, run_at, seq, target, holds
from {schema}.jobs where id in (select value from json_each(:ids)) and waits > 0;
