-- Take the keys that no job has, in order, for as long as their jobs are live. Returns those that were free.
insert into {schema}.keys (key, job)
select g.key, g.job from unnest(:keys::text[], :jobs::uuid[]) as g(key, job)
order by g.key collate "C"
on conflict (key) do nothing
returning key
