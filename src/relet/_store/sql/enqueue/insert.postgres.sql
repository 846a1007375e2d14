-- Insert new rows, and nudges for those that wait for a target. Touches no row that another transaction may have
-- locked. Notifies as many sleeping workers, and returns whether there are some of which none could be notified: one
-- may be in the client's process. (offset 0: the batch is read once, not for each use of a column.)
with clock as materialized (select {now} as moment),
placed as materialized (
    select g.*,
           case when waits > 0 then 'jobs'
                when due > moment then 'time'
                when target is not null then 'target' end as wait
    from (
        select b.*, c.moment,
               coalesce(to_timestamp(b.run_at), c.moment + make_interval(secs => coalesce(b.delay, 0))) as due
        from clock c cross join json_to_recordset(:batch::text::json) as b(
            id uuid, task text, queue text, priority smallint, payload text, run_at float8, delay float8, target text,
            group_key text, max_attempts integer, policy text, lease float8, unique_key text, windowed boolean,
            chain uuid, "position" integer, waits integer, watched boolean, context text, start_by float8)
        offset 0
    ) g
),
added as (
    insert into {schema}.jobs (id, state, wait, queue, task, priority, rank, target, group_key, payload, run_at,
                               max_attempts, policy, lease, unique_key, windowed, chain, "position", waits,
                               dependency_count, watched, context, created_at, start_by)
    select id, (case when wait is null then 'queued' else 'pending' end)::{schema}.job_state, wait, queue, task,
           priority, -priority, target,
           case when group_key is null and queue = any(array(select q.queue from {schema}.queues q where q.by_group))
                then '' else group_key end,
           payload::json, due, max_attempts, policy::json, lease, unique_key, windowed, chain, "position", waits, waits,
           watched, context, moment, to_timestamp(start_by)
    from placed
    on conflict (id) do nothing
    returning id, state, wait, queue, task, target, group_key, created_at, run_at
),
nudged_groups as (
    insert into {schema}.group_nudges (queue, group_key)
    select distinct queue, group_key from added
    where wait is null and {group_limited}
),
nudged as (
    insert into {schema}.nudges (kind, key) select 'target', target from added where wait = 'target'
),
notified as materialized (
    select case when k.wait then {schema}.wake(c.moment, {jobs_channel}, null, null, 1)
           else {schema}.wake(c.moment, {queued_channel}, k.queue, k.task, k.number) end as number
    from clock c cross join (
        select false as wait, queue, task, count(*)::integer as number from added where wait is null
        group by queue, task
        union all
        select true, null, null, 1 where exists (select from added where wait is not null)
    ) k
    where exists (select from {schema}.arming m where m.armed_until > c.moment)
)
select a.id::text, a.state::text, a.wait, date_part('epoch', a.created_at), date_part('epoch', a.run_at),
       (select sum(number) from notified) = 0
from added a
