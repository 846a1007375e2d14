-- The histograms of all queues together since the store was created.
select 0.0, '*', name, bucket, sum(number) from {schema}.stats
where step = 0 and at = 0 and name in ('waits', 'waits.sum', 'starts', 'starts.sum', 'runs', 'runs.sum')
group by name, bucket;
