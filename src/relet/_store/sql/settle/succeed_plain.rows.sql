-- Running -> succeeded, guarded by the lease, for jobs without a successor. Returns how many succeeded, and whether any
-- job waited for one of them, or one occupied its target.
with given as materialized (
    select g.id, g.token, g.result
    from unnest(:ids::uuid[], :tokens::uuid[], :results::text[]) as g(id, token, result)
),
gone as (
    delete from {schema}.jobs j using given g
    where j.id = g.id and j.token = g.token and j.state = 'running'
    returning {j.kept}, j.losses, j.token, j.watched, j.holds, g.result
),
kept as (
    insert into {schema}.finished ({kept}, losses, token, state, result, finished_at)
    select {kept}, losses, token, 'succeeded', coalesce(result, 'null'), {now} from gone
),
freed as (
    insert into {schema}.nudges (kind, key)
    select 'target', target from gone where holds
    union all
    select 'chain', chain::text from gone where watched
),
nudged_groups as (
    insert into {schema}.group_nudges (queue, group_key)
    select distinct queue, group_key from gone
    where {group_limited}
),
unkeyed as (
    -- Skips a key that another transaction has locked to take it over: the key of a job that is over means nothing.
    delete from {schema}.keys where key = any(array(
        select k.key from gone g join {schema}.keys k on k.key = g.unique_key and k.job = g.id and k.until is null
        for update of k skip locked))
)
select count(*), coalesce(bool_or(watched), false), coalesce(bool_or(holds), false) from gone
