-- Running -> succeeded, guarded by the lease. Moves the row to `finished`; everything else depends on that.
with given as materialized (
    select b.id, b.token, b.result, b.continued
    from json_to_recordset(:batch::text::json) as b(id uuid, token uuid, result text, continued boolean)
),
mine as materialized (
    select j.id, j.token from {schema}.jobs j
    where j.id = any(array(select id from given)) and j.token = any(array(select token from given))
      and j.state = 'running'
    order by j.id
    for update
),
gone as (
    delete from {schema}.jobs j using mine m join given g on g.id = m.id and g.token = m.token
    where j.id = m.id and j.token = m.token and j.state = 'running'
    returning {j.kept}, j.losses, j.token, j.holds, j.watched, g.result, g.continued
),
kept as (
    insert into {schema}.finished ({kept}, losses, token, state, result, continued, finished_at)
    select {kept}, losses, token, 'succeeded', result::json, continued, {now} from gone
),
freed as (
    insert into {schema}.nudges (kind, key)
    select 'target', target from gone where holds
    union all
    select 'chain', chain::text from gone where watched and not continued
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
select id::text, token::text, chain::text, "position", watched, holds from gone
