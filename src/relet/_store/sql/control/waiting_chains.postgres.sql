-- The jobs that wait for these chains, the jobs that wait for the chains of those, and so on: each job with its chain
-- and the chain that it waits for. (Written so that the planner cannot choose another join: one index lookup for each.)
with recursive waiting(job, chain, blocker) as (
    select null::uuid, json_array_elements_text(:chains::text::json)::uuid, null::uuid
    union
    select e.job, e.chain, e.blocker
    from waiting w cross join lateral (
        select e.job, j.chain, e.blocker
        from {schema}.edges e
        cross join lateral (select j.chain from {schema}.jobs j where j.id = e.job offset 0) j
        where e.blocker = w.chain and e.state is null
        offset 0
    ) e
)
select job::text, chain::text, blocker::text from waiting where job is not null order by job
