-- How many jobs are in line before a job at its target, counted up to `count_limit`.
select count(*) from (
    select 1 from {schema}.jobs
    where target = :target and wait = 'target' and seq < (select seq from {schema}.jobs where id = :id)
    limit :count_limit
);
