-- add_stats: count what has happened towards the minute, and towards everything that ever happened (step 0). In one order:
-- many do this at once.
insert into {schema}.stats as s (step, at, queue, name, bucket, peak, number)
select t.step, t.at, b.queue, b.name, b.bucket, b.peak, b.number
from json_to_recordset(:batch::text::json) as b(queue text, name text, bucket smallint, peak boolean, number float8)
cross join (values (60, to_timestamp(floor(extract(epoch from {now}) / 60) * 60)), (0, to_timestamp(0))) as t(step, at)
where t.step > 0 or not b.peak
order by t.step, b.queue, b.name, b.bucket
on conflict (step, at, queue, name, bucket) do update
set number = case when s.peak then greatest(s.number, excluded.number) else s.number + excluded.number end
