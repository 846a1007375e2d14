-- Delete counts that were added up in longer steps, or that are older than any step, up to one of them.
delete from {schema}.stats
where step = :step::integer
  and (at, queue, name, bucket) <= (to_timestamp(:at::float8), :queue::text, :name::text, :bucket::smallint)
