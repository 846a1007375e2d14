-- Store a signal for a job, and nudge the promoter. A value sent before under this name stays.
insert into {schema}.nudges (kind, key)
select 'signal', :job where not exists (select 1 from {schema}.signals where job = :job and name = :name);

insert into {schema}.signals (job, name, value, sent_at) values (:job, :name, :value, {now})
on conflict (job, name) do nothing
returning job;
