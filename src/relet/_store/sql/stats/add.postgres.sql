-- Add counts to the minute, and to the total (step 0). Counts of all queues together have negative steps. In one order,
-- as many workers do this at once.
insert into {schema}.stats as s (step, at, queue, name, bucket, peak, number)
select case when b.queue = '*' then - t.step else t.step end, t.at, b.queue, b.name, b.bucket, b.peak, b.number
from json_to_recordset(:batch::text::json) as b(queue text, name text, bucket smallint, peak boolean, number float8)
cross join (values (60, to_timestamp(floor(extract(epoch from {now}) / 60) * 60)), (0, to_timestamp(0))) as t(step, at)
where t.step > 0 or not (b.peak or b.queue = '*')
order by 1, b.queue, b.name, b.bucket
on conflict (step, at, queue, name, bucket) do update
set number = case when s.peak then greatest(s.number, excluded.number) else s.number + excluded.number end
