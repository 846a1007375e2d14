-- A page of jobs that have failed, or of those that are running, newest first by id, which carries its time. (No id is
-- as great as 'g'. They are few among many, and each kind has an index of its own.)
select id, task, queue, state, priority, payload, attempt, max_attempts, losses, version, chain, position,
       created_at, run_at, started_at, stopped_at, wait, target, holds, unique_key, worker,
       expires_at, request, null, error, 0, progress, key, awaits, context, renewed_at
from (
    select * from {schema}.jobs indexed by {schema}.jobs_failed where state = 'failed' and :state = 'failed'
    union all
    select * from {schema}.jobs indexed by {schema}.jobs_leased where expires_at is not null and :state = 'running'
)
where id >= coalesce(:lowest, '')
  and id < coalesce(:before, 'g')
  and (:queue is null or queue = :queue)
  and (:task is null or task = :task)
  and (:target is null or target = :target)
  and (:worker is null or worker = :worker)
  and (:error is null or instr(lower(error), lower(:error)) > 0)
  and (:created_from is null or created_at >= :created_from)
  and (:created_to is null or created_at < :created_to)
order by id desc
limit :most;
