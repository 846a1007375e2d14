-- Take the keys that no job has, for as long as their jobs are live. Returns those that were free.
insert into {schema}.keys (key, job)
select k.value, json_extract(:jobs, k.fullkey) from json_each(:keys) k
where true
on conflict (key) do nothing
returning key;
