-- Jobs that sleep until a signal comes, and whose signal has come, are due now.
update {schema}.jobs set run_at = {now}, awaits = null
where id in (select value from json_each(:ids)) and wait = 'time' and run_at > {now}
  and exists (select 1 from {schema}.signals s where s.job = {schema}.jobs.id and s.name = {schema}.jobs.awaits);

select id from {schema}.jobs where false;
