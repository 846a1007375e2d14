-- stats_together: what was counted, of all queues together. Peaks of queues are summed up, but for how long the oldest waits.
select moment, '*', name, bucket, case when name = 'gauge.oldest' then max(number) else sum(number) end
from (
    select cast(at / :step as integer) * :step as moment, queue, name, bucket,
           case when max(peak) then max(number) else sum(number) end as number
    from {schema}.stats
    where step in (60, 600, 3600, 21600) and step <= :step and at >= :since and at < :until and name <> 'sampled'
    group by moment, queue, name, bucket
)
group by moment, name, bucket
order by moment;
