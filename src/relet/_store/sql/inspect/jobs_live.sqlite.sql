-- A page of jobs that are not over, newest first by id, which carries its time. (No id is as great as 'g'.)
select id, task, queue, state, priority, payload, attempt, max_attempts, losses, version, chain, position,
       created_at, run_at, started_at, finished_at, wait, target, holds, unique_key, worker,
       expires_at, request, result, error, continued, progress, key, awaits, context, renewed_at
from {schema}.live_jobs j
where id >= coalesce(:lowest, '')
  and id < coalesce(:before, 'g')
  and (:states is null or state in (select value from json_each(:states)))
  and (:queue is null or queue = :queue)
  and (:task is null or task = :task)
  and (:target is null or target = :target)
  and (:worker is null or worker = :worker)
  and (:error is null or instr(lower(error), lower(:error)) > 0)
  and (:created_from is null or created_at >= :created_from)
  and (:created_to is null or created_at < :created_to)
order by id desc
limit :most;
