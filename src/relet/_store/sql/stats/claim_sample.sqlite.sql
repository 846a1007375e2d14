-- One sample for each minute is enough: the worker that inserts this row takes it. `number`: for how many minutes the
-- sample is enough, which is more if it took long. Each of the minutes before is looked up by the whole primary key.
insert into {schema}.stats (step, at, queue, name, bucket, peak, number)
with recursive before(number) as (select 1 union all select number + 1 from before where number + 1 < :minutes)
select 60, c.minute, '', 'sampled', 0, 1, 1
from (select cast({now} / 60 as integer) * 60 as minute) c
where not exists (
    select 1 from before cross join {schema}.stats s
        on s.step = 60 and s.at = c.minute - 60 * before.number and s.queue = '' and s.name = 'sampled' and s.bucket = 0
    where s.number > before.number
)
on conflict do nothing
returning at;
