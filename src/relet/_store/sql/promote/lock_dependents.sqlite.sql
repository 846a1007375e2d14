-- Those of the jobs named that still wait for others; the chains of those that went on with one; and what decides
-- where they go once they wait no longer: whether their time has come, and the target.
select id, 1, waits, policy, case when position > 0 then chain end, state = 'pending' and run_at <= {now}, run_at, seq, target, holds
from {schema}.jobs where id in (select value from json_each(:ids)) and waits > 0;
