-- How many jobs that have failed, or that are running, counted no further than asked.
select count(*) from (
    select 1 from {schema}.jobs
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
    limit :most::integer
) as counted
