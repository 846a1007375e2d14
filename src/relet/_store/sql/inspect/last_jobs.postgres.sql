-- The last jobs of the chains named.
select id::text, task, queue, state::text, priority, payload::text, attempt, max_attempts, losses, version, chain::text, "position",
       extract(epoch from created_at)::float8, extract(epoch from run_at)::float8, extract(epoch from started_at)::float8,
       extract(epoch from finished_at)::float8, wait, target, holds, unique_key, worker,
       extract(epoch from expires_at)::float8, request, result::text, error, continued, progress::text, key, awaits, context, extract(epoch from renewed_at)::float8
from {schema}.all_jobs
where (id = any(array(select json_array_elements_text(:chains::text::json)::uuid))
       or (chain = any(array(select json_array_elements_text(:chains::text::json)::uuid)) and "position" > 0))
  and not continued
