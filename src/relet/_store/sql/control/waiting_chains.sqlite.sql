-- The jobs that wait for these chains, the jobs that wait for the chains of those, and so on: each job with its chain
-- and the chain that it waits for.
with recursive waiting(job, chain, depends_on) as (
    select null, value, null from json_each(:chains)
    union
    select d.job, j.chain, d.depends_on
    from waiting w cross join {schema}.dependencies d cross join {schema}.jobs j
    where d.depends_on = w.chain and d.state is null and j.id = d.job
)
select job, chain, depends_on from waiting where job is not null order by job;
