-- The last jobs of the chains named. (By id, and by chain: two ways into each table.)
select id, task, queue, state, priority, payload, attempt, max_attempts, losses, version, chain, position,
       created_at, run_at, started_at, finished_at, wait, target, holds, unique_key, worker,
       expires_at, request, result, error, continued, progress, key, awaits, context, renewed_at
from {schema}.live_jobs
where id in (select value from json_each(:chains)) and not continued
union all
select id, task, queue, state, priority, payload, attempt, max_attempts, losses, version, chain, position,
       created_at, run_at, started_at, finished_at, wait, target, holds, unique_key, worker,
       expires_at, request, result, error, continued, progress, key, awaits, context, renewed_at
from {schema}.live_jobs
where position > 0 and chain in (select value from json_each(:chains)) and not continued
union all
select id, task, queue, state, priority, payload, attempt, max_attempts, losses, version, chain, position,
       created_at, run_at, started_at, finished_at, wait, target, holds, unique_key, worker,
       expires_at, request, result, error, continued, progress, key, awaits, context, renewed_at
from {schema}.over_jobs
where id in (select value from json_each(:chains)) and not continued
union all
select id, task, queue, state, priority, payload, attempt, max_attempts, losses, version, chain, position,
       created_at, run_at, started_at, finished_at, wait, target, holds, unique_key, worker,
       expires_at, request, result, error, continued, progress, key, awaits, context, renewed_at
from {schema}.over_jobs
where position > 0 and chain in (select value from json_each(:chains)) and not continued;
