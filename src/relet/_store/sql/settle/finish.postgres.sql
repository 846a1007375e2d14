-- Move rows that an earlier statement has locked from `jobs` to `finished`. Like succeed, without its guard.
with given as materialized (
    select b.id, b.state, b.result, b.error, b.losses, b.continued, b.keeps_token
    from json_to_recordset(:batch::text::json) as b(
        id uuid, state {schema}.job_state, result text, error text, losses integer, continued boolean,
        keeps_token boolean)
),
gone as (
    delete from {schema}.jobs j using given g
    where j.id = g.id and j.id = any(array(select id from given))
    returning j.id, g.state, g.result, coalesce(g.error, j.error) as error, g.continued, j.queue, j.task, j.priority,
              j.target, j.group_key, j.holds, j.state = 'paused' and j.wait is not null as kept_place, j.payload,
              j.attempt,
              j.max_attempts, g.losses, j.version, j.worker, case when g.keeps_token then j.token end as token, j.chain,
              j."position", j.watched, j.unique_key, j.created_at, j.run_at, j.started_at, j.renewed_at, j.context
),
kept as (
    insert into {schema}.finished (id, state, queue, task, priority, target, group_key, payload, result, error,
                                   attempt, max_attempts, losses, version, worker, token, chain, "position",
                                   continued, unique_key, created_at, run_at, started_at, renewed_at, context,
                                   finished_at)
    select id, state, queue, task, priority, target, group_key, payload, result::json, error, attempt, max_attempts,
           losses, version, worker, token, chain, "position", continued, unique_key, created_at, run_at, started_at,
           renewed_at, context, {now}
    from gone
),
freed as (
    insert into {schema}.nudges (kind, key)
    select 'target', target from gone where holds or kept_place
    union all
    select 'chain', chain::text from gone where watched and not continued
),
unkeyed as (
    -- Skips a key that another transaction has locked to take it over: the key of a job that is over means nothing.
    delete from {schema}.keys where key = any(array(
        select k.key from gone g join {schema}.keys k on k.key = g.unique_key and k.job = g.id and k.until is null
        for update of k skip locked))
)
select id::text, chain::text, "position", watched, holds from gone
