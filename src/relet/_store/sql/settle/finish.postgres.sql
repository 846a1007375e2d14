-- Move rows that an earlier statement has locked from `jobs` to `finished`. Like succeed, without its guard.
with given as materialized (
    select b.id, b.state, b.result, b.error, b.error_type, b.losses, b.continued, b.keeps_token
    from json_to_recordset(:batch::text::json) as b(
        id uuid, state {schema}.job_state, result text, error text, error_type text, losses integer,
        continued boolean, keeps_token boolean)
),
gone as (
    delete from {schema}.jobs j using given g
    where j.id = g.id and j.id = any(array(select id from given))
    returning {j.kept}, g.losses, case when g.keeps_token then j.token end as token, j.holds, j.watched, g.state,
              g.result, coalesce(g.error, j.error) as error, g.error_type, g.continued,
              j.state = 'paused' and j.wait is not null as kept_place
),
kept as (
    insert into {schema}.finished ({kept}, losses, token, state, result, error, error_type, continued, finished_at)
    select {kept}, losses, token, state, result::json, error, error_type, continued, {now} from gone
),
freed as (
    insert into {schema}.nudges (kind, key)
    select 'target', target from gone where holds or kept_place
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
select id::text, chain::text, "position", watched, holds from gone
