-- add_tick: whoever adds the row of a tick is the one who enqueues its job.
insert into {schema}.ticks (schedule, tick, job, note) values (:name, :at, :job, :note) on conflict do nothing returning schedule;
