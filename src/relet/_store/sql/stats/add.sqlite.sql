-- Add counts to the minute, and to the total (step 0). Counts of all queues together have negative steps.
insert into {schema}.stats as s (step, at, queue, name, bucket, peak, number)
select case when json_extract(value, '$.queue') = '*' then - t.step else t.step end, t.at,
       json_extract(value, '$.queue'), json_extract(value, '$.name'), json_extract(value, '$.bucket'),
       json_extract(value, '$.peak'), json_extract(value, '$.number')
from json_each(:batch), (select 60 as step, cast({now} / 60 as integer) * 60 as at union all select 0, 0) as t
where t.step > 0 or not (json_extract(value, '$.peak') or json_extract(value, '$.queue') = '*')
on conflict (step, at, queue, name, bucket) do update
set number = case when s.peak then max(s.number, excluded.number) else s.number + excluded.number end;
