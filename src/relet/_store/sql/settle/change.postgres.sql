-- Apply decisions to rows that an earlier statement has locked and that stay in `jobs`. Inserts the attempt that ended,
-- frees the target and the key where the decision says so, and nudges the promoter about jobs that this may free.
with given as materialized (
    select b.*, {now} as moment, {now} + make_interval(secs => b.delay) as due
    from json_to_recordset(:batch::text::json) as b(
        id uuid, outcome text, state {schema}.job_state, wait text, delay float8, attempt integer, losses integer,
        holds boolean, error text, error_type text, keeps_token boolean, awaits text)
),
before as materialized (
    select j.id, j.state, j.version, j.attempt, j.worker, j.started_at, j.renewed_at, j.expires_at, j.target, j.holds,
           j.watched, j.chain, j.unique_key, j.awaits
    from {schema}.jobs j where j.id = any(array(select id from given))
),
ended as (
    insert into {schema}.attempts ( job, version, attempt, worker, started_at, renewed_at, expires_at, ended_at,
                                   outcome, error, error_type)
    select b.id, b.version, b.attempt, b.worker, b.started_at, b.renewed_at, b.expires_at, {now}, g.outcome, g.error,
           g.error_type
    from before b join given g on g.id = b.id
    where b.state = 'running'
    on conflict do nothing
),
moved as (
    update {schema}.jobs j
    set state = g.state, wait = g.wait, attempt = g.attempt, losses = g.losses, suspect = least(g.losses, 2),
        holds = g.holds, run_at = coalesce(g.due, j.run_at),
        token = case when g.keeps_token then j.token end,
        stopped_at = case when g.state in ('paused', 'failed') then g.moment end,
        error = coalesce(g.error, j.error), worker = null, expires_at = null, renewed_at = null, started_at = null,
        request = null, alone = false, awaits = case when j.state = 'running' then g.awaits else j.awaits end
    from given g
    where j.id = g.id and j.id = any(array(select id from given))
    returning j.id, j.version, j.queue, j.group_key
),
nudged_groups as (  -- the attempt has ended, or the job is queued again
    insert into {schema}.group_nudges (queue, group_key)
    select distinct queue, group_key from moved
    where {group_limited}
),
nudged as (
    insert into {schema}.nudges (kind, key)
    select 'target', b.target from before b join given g on g.id = b.id
    where b.target is not null and (b.holds and not g.holds or g.wait = 'target' and g.state = 'pending')
    union all
    select 'job', b.id::text from before b join given g on g.id = b.id where g.wait = 'jobs'
    union all
    select 'chain', b.chain::text from before b join given g on g.id = b.id where b.watched and g.state = 'failed'
    union all
    select 'signal', b.id::text from before b join given g on g.id = b.id
    where g.wait = 'time' and case when b.state = 'running' then g.awaits else b.awaits end is not null
),
unkeyed as (
    delete from {schema}.keys where key = any(array(
        select k.key from before b join given g on g.id = b.id and g.state = 'failed'
        join {schema}.keys k on k.key = b.unique_key and k.job = b.id and k.until is null
        for update of k skip locked))
)
select id::text, version from moved
