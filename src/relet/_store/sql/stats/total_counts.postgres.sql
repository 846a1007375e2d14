-- The totals of every queue without the histograms, which are most of the rows.
select 0::float8, queue, name, bucket, number from {schema}.stats
where step = 0 and at = to_timestamp(0)
  and name not in ('waits', 'waits.sum', 'starts', 'starts.sum', 'runs', 'runs.sum')
order by queue
