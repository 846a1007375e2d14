-- One sample for each minute is enough: the worker that inserts this row takes it. `number`: for how many minutes the
-- sample is enough, which is more if it took long. Each of the minutes before is looked up by the whole primary key.
with claimed as (
    insert into {schema}.stats (step, at, queue, name, bucket, peak, number)
    select 60, to_timestamp(c.minute), '', 'sampled', 0, true, 1
    from (select floor(extract(epoch from {now}) / 60) * 60 as minute) c
    where not exists (
        select from generate_series(1, :minutes::integer - 1) as before(number)
        join {schema}.stats s on s.step = 60 and s.at = to_timestamp(c.minute - 60 * before.number) and s.queue = ''
            and s.name = 'sampled' and s.bucket = 0
        where s.number > before.number
    )
    on conflict do nothing
    returning at
)
select extract(epoch from at)::float8 from claimed
