-- add_ticks: whoever adds the row of a tick is the one who enqueues its job. Returns the jobs of those that are new.
insert into {schema}.ticks (schedule, tick, job, note)
select json_extract(b.value, '$.name'), json_extract(b.value, '$.at'), json_extract(b.value, '$.job'), json_extract(b.value, '$.note') from json_each(:batch) b
where true
on conflict do nothing
returning job;
