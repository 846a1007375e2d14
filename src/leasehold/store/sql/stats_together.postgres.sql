-- stats_together: what was counted, of all queues together. Peaks of queues are summed up, but for how long the oldest waits.
select moment, '*', name, bucket, case when name = 'gauge.oldest' then max(number) else sum(number) end
from (
    select floor(extract(epoch from at) / :step::integer)::float8 * :step::integer as moment, queue, name, bucket,
           case when bool_or(peak) then max(number) else sum(number) end as number
    from {schema}.stats
    where step = any(array[60, 600, 3600, 21600]) and step <= :step::integer
      and at >= to_timestamp(:since::float8) and at < to_timestamp(:until::float8) and name <> 'sampled'
    group by 1, queue, name, bucket
) by_queue
group by moment, name, bucket
order by moment
