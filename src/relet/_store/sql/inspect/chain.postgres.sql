-- All jobs of the chain that a job belongs to, or that goes by its id, though the job is gone.
with c as materialized (
    select coalesce((select chain from {schema}.all_jobs where id = :id::text::uuid), :id::text::uuid) as chain
)
select id::text, task, queue, state::text, priority, payload::text, attempt, max_attempts, losses, version, chain::text, "position",
       extract(epoch from created_at)::float8, extract(epoch from run_at)::float8, extract(epoch from started_at)::float8,
       extract(epoch from finished_at)::float8, wait, target, holds, unique_key, worker,
       extract(epoch from expires_at)::float8, request, result::text, error, continued, progress::text, key, awaits, context, extract(epoch from renewed_at)::float8
from {schema}.all_jobs
where id = any(array(select chain from c)) or (chain = any(array(select chain from c)) and "position" > 0)
