-- How many jobs that are not over, counted no further than asked.
select count(*) from (
    select 1 from {schema}.jobs
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
    limit coalesce(:most, -1)
) as counted;
