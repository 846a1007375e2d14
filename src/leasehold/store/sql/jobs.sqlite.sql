-- jobs: a page of jobs of both tables, newest first by id, which carries its time. (No id is as great as 'g'. Of each table
-- by itself, as far as needed: together, SQLite would sort them all.)
select * from (
    select id, task, queue, state, priority, payload, attempt, max_attempts, losses, version, chain, position,
           created_at, run_at, started_at, finished_at, wait, target, holds, unique_key, worker,
           expires_at, request, result, error, continued, progress, key, awaits
    from {schema}.live_jobs
    where id < coalesce(:before, 'g')
      and (:states is null or state in (select value from json_each(:states)))
      and (:queue is null or queue = :queue)
      and (:task is null or task = :task)
      and (:target is null or target = :target)
      and (:created_from is null or created_at >= :created_from)
      and (:created_to is null or created_at < :created_to)
    order by id desc
    limit :most
)
union all
select * from (
    select id, task, queue, state, priority, payload, attempt, max_attempts, losses, version, chain, position,
           created_at, run_at, started_at, finished_at, wait, target, holds, unique_key, worker,
           expires_at, request, result, error, continued, progress, key, awaits
    from {schema}.over_jobs
    where id < coalesce(:before, 'g')
      and (:states is null or state in (select value from json_each(:states)))
      and (:queue is null or queue = :queue)
      and (:task is null or task = :task)
      and (:target is null or target = :target)
      and (:created_from is null or created_at >= :created_from)
      and (:created_to is null or created_at < :created_to)
    order by id desc
    limit :most
)
order by 1 desc
limit :most;
