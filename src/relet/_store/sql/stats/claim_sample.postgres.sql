-- One sample for each minute is enough: the worker that inserts this row takes it.
insert into {schema}.stats (step, at, queue, name, bucket, peak, number)
select 60, to_timestamp(floor(extract(epoch from {now}) / 60) * 60), '', 'sampled', 0, true, 1
on conflict do nothing
returning true
