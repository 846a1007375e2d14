-- Counts of every queue in steps of at least this length. Counts in shorter steps are added up.
select cast(at / :step as integer) * :step as moment, queue, name, bucket,
       case when max(peak) then max(number) else sum(number) end
from {schema}.stats
where step in (60, 600, 3600, 21600) and step <= :step and at >= :since and at < :until
  and name <> 'sampled'
  and (:only is null or name = :only)
group by moment, queue, name, bucket
order by moment, queue;
