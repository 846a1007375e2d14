-- chain: all jobs of the chain that a job belongs to.
select id, task, queue, state, priority, payload, attempt, max_attempts, losses, version, chain, position,
       created_at, run_at, started_at, finished_at, wait, target, holds, unique_key, worker,
       expires_at, request, result, error, continued, progress
from {schema}.all_jobs
where id in (select chain from {schema}.all_jobs where id = :id)
   or position > 0 and chain in (select chain from {schema}.all_jobs where id = :id);
