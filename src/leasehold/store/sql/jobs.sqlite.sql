-- jobs: a page of jobs of both tables, newest first by id, which carries its time.
select id, task, queue, state, priority, payload, attempt, max_attempts, losses, version, chain, position,
       created_at, run_at, started_at, finished_at, wait, target, holds, unique_key, worker,
       expires_at, request, result, error, continued, progress
from {schema}.all_jobs
where (:before is null or id < :before)
  and (:states is null or state in (select value from json_each(:states)))
  and (:queue is null or queue = :queue)
  and (:task is null or task = :task)
  and (:target is null or target = :target)
  and (:created_from is null or created_at >= :created_from)
  and (:created_to is null or created_at < :created_to)
order by id desc
limit :most;
