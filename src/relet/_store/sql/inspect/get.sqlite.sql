-- Jobs by id, from both tables.
select id, task, queue, state, priority, payload, attempt, max_attempts, losses, version, chain, position,
       created_at, run_at, started_at, finished_at, wait, target, holds, unique_key, worker,
       expires_at, request, result, error, continued, progress, key, awaits, context, renewed_at
from {schema}.live_jobs
where id in (select value from json_each(:ids))
union all
select id, task, queue, state, priority, payload, attempt, max_attempts, losses, version, chain, position,
       created_at, run_at, started_at, finished_at, wait, target, holds, unique_key, worker,
       expires_at, request, result, error, continued, progress, key, awaits, context, renewed_at
from {schema}.over_jobs
where id in (select value from json_each(:ids));
