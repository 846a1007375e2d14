-- A page of jobs that have failed, or of those that are running, newest first by id, which carries its time.
select id::text, task, queue, state::text, priority, payload::text, attempt, max_attempts, losses, version, chain::text, "position",
       extract(epoch from created_at)::float8, extract(epoch from run_at)::float8, extract(epoch from started_at)::float8,
       extract(epoch from finished_at)::float8, wait, target, holds, unique_key, worker,
       extract(epoch from expires_at)::float8, request, result::text, error, continued, progress::text, key, awaits, context,
       extract(epoch from renewed_at)::float8
from {schema}.live_jobs j
where id >= coalesce(:lowest::text, '00000000-0000-0000-0000-000000000000')::uuid
  and id < coalesce(:before::text, 'ffffffff-ffff-ffff-ffff-ffffffffffff')::uuid
  and state = :state::text::{schema}.job_state
  and (:queue::text is null or queue = :queue::text)
  and (:task::text is null or task = :task::text)
  and (:target::text is null or target = :target::text)
  and (:worker::text is null or worker = :worker::text)
  and (:error::text is null or position(lower(:error::text) in lower(error)) > 0)
  and (:created_from::float8 is null or created_at >= to_timestamp(:created_from::float8))
  and (:created_to::float8 is null or created_at < to_timestamp(:created_to::float8))
order by j.id desc
limit :most::integer
