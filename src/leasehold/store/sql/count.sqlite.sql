-- count: how many jobs, counted no further than asked.
select count(*) from (
    select 1 from {schema}.all_jobs
    where (:states is null or state in (select value from json_each(:states)))
      and (:queue is null or queue = :queue)
      and (:task is null or task = :task)
      and (:target is null or target = :target)
      and (:created_from is null or created_at >= :created_from)
      and (:created_to is null or created_at < :created_to)
    limit coalesce(:most, -1)
) as counted;
