-- The jobs that wait for these chains, the jobs that wait for the chains of those, and so on: each job with its chain
-- and the chain that it waits for. (Written so that the planner cannot choose another join: one index lookup for each.)
with recursive waiting(job, chain, depends_on) as (
    select null::uuid, json_array_elements_text(:chains::text::json)::uuid, null::uuid
    union
    select d.job, d.chain, d.depends_on
    from waiting w cross join lateral (
        select d.job, j.chain, d.depends_on
        from {schema}.dependencies d
        cross join lateral (select j.chain from {schema}.jobs j where j.id = d.job offset 0) j
        where d.depends_on = w.chain and d.state is null
        offset 0
    ) d
)
select job::text, chain::text, depends_on::text from waiting where job is not null order by job
