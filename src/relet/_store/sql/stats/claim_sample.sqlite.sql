-- One sample for each minute is enough: the worker that inserts this row takes it.
insert into {schema}.stats (step, at, queue, name, bucket, peak, number)
values (60, cast({now} / 60 as integer) * 60, '', 'sampled', 0, 1, 1)
on conflict do nothing
returning 1;
