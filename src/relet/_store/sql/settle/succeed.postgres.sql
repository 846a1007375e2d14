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
    returning j.id, g.result, g.continued, j.queue, j.task, j.priority, j.target, j.group_key, j.holds, j.payload,
        j.attempt,
              j.max_attempts, j.losses, j.version, j.worker, j.token, j.chain, j."position", j.watched, j.unique_key,
              j.created_at, j.run_at, j.started_at, j.renewed_at, j.context
),
kept as (
    insert into {schema}.finished (id, state, queue, task, priority, target, group_key, payload, result, attempt,
                                   max_attempts, losses, version, worker, token, chain, "position", continued,
                                   unique_key, created_at, run_at, started_at, renewed_at, context, finished_at)
    select id, 'succeeded', queue, task, priority, target, group_key, payload, result::json, attempt, max_attempts,
        losses,
           version, worker, token, chain, "position", continued, unique_key, created_at, run_at, started_at, renewed_at,
           context, {now}
    from gone
),
freed as (
    insert into {schema}.nudges (kind, key)
    select 'target', target from gone where holds
    union all
    select 'chain', chain::text from gone where watched and not continued
),
unkeyed as (
    -- Skips a key that another transaction has locked to take it over: the key of a job that is over means nothing.
    delete from {schema}.keys where key = any(array(
        select k.key from gone g join {schema}.keys k on k.key = g.unique_key and k.job = g.id and k.until is null
        for update of k skip locked))
)
select id::text, token::text, chain::text, "position", watched, holds from gone
