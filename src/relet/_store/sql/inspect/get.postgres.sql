-- Jobs by id, from both tables.
select j.id::text, task, queue, state::text, priority, payload::text, attempt, max_attempts, losses, version, chain::text, "position",
       extract(epoch from created_at)::float8, extract(epoch from run_at)::float8, extract(epoch from started_at)::float8,
       extract(epoch from finished_at)::float8, wait, target, holds, unique_key, worker,
       extract(epoch from expires_at)::float8, request, result::text, error, continued, progress::text, key, awaits, context, extract(epoch from renewed_at)::float8
from (select distinct json_array_elements_text(:ids::text::json)::uuid as given) g
cross join lateral (select * from {schema}.all_jobs a where a.id = g.given limit 1) j
