-- The jobs that wait for these chains, the jobs that wait for the chains of those, and so on: each job with its chain
-- and the chain that it waits for.
with recursive waiting(job, chain, blocker) as (
    select null, value, null from json_each(:chains)
    union
    select e.job, j.chain, e.blocker
    from waiting w cross join {schema}.edges e cross join {schema}.jobs j
    where e.blocker = w.chain and e.state is null and j.id = e.job
)
select job, chain, blocker from waiting where job is not null order by job;
