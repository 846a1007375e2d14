-- The chain of each job.
select id, chain from {schema}.live_jobs where id in (select value from json_each(:ids))
union all
select id, chain from {schema}.over_jobs where id in (select value from json_each(:ids));
