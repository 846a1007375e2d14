-- How many jobs that have failed, or that are running, counted no further than asked.
select count(*) from (
    select 1 from (
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
    limit coalesce(:most, -1)
) as counted;
