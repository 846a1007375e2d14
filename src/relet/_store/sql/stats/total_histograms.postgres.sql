-- The histograms of all queues together since the store was created. Materialized, so that the planner, which expects
-- few rows, does not sort them.
with found as materialized (
    select name, bucket, number from {schema}.stats
    where step = 0 and at = to_timestamp(0)
      and name in ('waits', 'waits.sum', 'starts', 'starts.sum', 'runs', 'runs.sum')
)
select 0::float8, '*', name, bucket, sum(number) from found
group by name, bucket
