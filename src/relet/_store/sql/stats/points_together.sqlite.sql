-- Counts of all queues together, which are stored separately, with negative steps.
select cast(at / :step as integer) * :step as moment, '*', name, bucket,
       case when max(peak) then max(number) else sum(number) end
from {schema}.stats
where step in (-60, -600, -3600, -21600) and step >= - :step and at >= :since and at < :until
  and (:only is null or name = :only)
group by moment, name, bucket
order by moment;
