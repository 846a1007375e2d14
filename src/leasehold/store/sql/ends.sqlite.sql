-- ends: the last jobs of the chains named.
select id, task, queue, state, priority, payload, attempt, max_attempts, losses, version, chain, position,
       created_at, run_at, started_at, finished_at, wait, target, holds, unique_key, worker,
       expires_at, request, result, error, continued, progress
from {schema}.all_jobs
where (id in (select value from json_each(:chains)) or position > 0 and chain in (select value from json_each(:chains)))
  and not continued;
