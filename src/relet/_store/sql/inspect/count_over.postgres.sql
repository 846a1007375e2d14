-- How many jobs that are over, counted no further than asked.
select count(*) from (
    select 1 from {schema}.finished
    where id >= coalesce(:lowest::text, '00000000-0000-0000-0000-000000000000')::uuid
      and id < coalesce(:before::text, 'ffffffff-ffff-ffff-ffff-ffffffffffff')::uuid
      and (:states::text is null or state = any(array(select json_array_elements_text(:states::text::json)::{schema}.job_state)))
      and (:queue::text is null or queue = :queue::text)
      and (:task::text is null or task = :task::text)
      and (:target::text is null or target = :target::text)
      and (:worker::text is null or worker = :worker::text)
      and (:created_from::float8 is null or created_at >= to_timestamp(:created_from::float8))
      and (:created_to::float8 is null or created_at < to_timestamp(:created_to::float8))
    limit :most::integer
) as counted
