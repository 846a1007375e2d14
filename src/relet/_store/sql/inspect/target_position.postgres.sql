-- How many jobs are in line before a job at its target.
select count(*) from {schema}.jobs
where target = :target::text and wait = 'target' and seq < (select seq from {schema}.jobs where id = :id::text::uuid)
