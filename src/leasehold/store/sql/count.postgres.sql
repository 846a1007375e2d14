-- count: how many jobs, counted no further than asked.
select count(*) from (
    select 1 from {schema}.all_jobs
    where (:states::text is null or state = any(array(select json_array_elements_text(:states::text::json))))
      and (:queue::text is null or queue = :queue::text)
      and (:task::text is null or task = :task::text)
      and (:target::text is null or target = :target::text)
      and (:created_from::float8 is null or created_at >= to_timestamp(:created_from::float8))
      and (:created_to::float8 is null or created_at < to_timestamp(:created_to::float8))
    limit :most::integer
) as counted
