-- Counts of every queue in steps of at least this length. Counts in shorter steps are added up.
select floor(extract(epoch from at) / :step::integer)::float8 * :step::integer as moment, queue, name, bucket,
       case when bool_or(peak) then max(number) else sum(number) end
from {schema}.stats
where step = any(array[60, 600, 3600, 21600]) and step <= :step::integer
  and at >= to_timestamp(:since::float8) and at < to_timestamp(:until::float8)
  and name <> 'sampled'
  and (:only::text is null or name = :only::text)
group by 1, queue, name, bucket
order by 1, queue
