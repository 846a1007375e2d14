-- How many jobs are in line before a job at its target, counted up to `count_limit`.
select count(*) from (
    select from {schema}.jobs
    where target = :target::text and wait = 'target'
      and seq < (select seq from {schema}.jobs where id = :id::text::uuid)
    limit :count_limit::integer
) before
