-- Add up old counts in longer steps, up to one of them. A later statement deletes them.
insert into {schema}.stats as s (step, at, queue, name, bucket, peak, number)
select :longer, cast(at / abs(:longer) as integer) * abs(:longer) as moment, queue, name, bucket, peak,
       case when peak then max(number) else sum(number) end
from {schema}.stats
where step = :step and (at, queue, name, bucket) <= (:at, :queue, :name, :bucket)
group by moment, queue, name, bucket, peak
on conflict (step, at, queue, name, bucket) do update
set number = case when s.peak then max(s.number, excluded.number) else s.number + excluded.number end;
