-- How many stand before a job in its target's line.
select count(*) from {schema}.jobs
where target = :target::text and wait = 'target' and seq < (select seq from {schema}.jobs where id = :id::text::uuid)
