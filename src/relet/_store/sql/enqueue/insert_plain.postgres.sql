-- Insert new jobs that wait for nothing but their targets, in order, and notify as many sleeping workers. Values
-- that jobs of one task share are sent once, as a kind; each job names the number of its kind. The client may have
-- repeated this statement, and the server may run the first one when jobs are over: those are not inserted. Ids carry
-- the time, so that one probe tells whether any job of that time is over. Returns whether workers sleep of which none
-- could be notified: one may be in the client's process.
with given as materialized (
    select g.id, g.payload, g.kind, g.group_key, g.context, g.unique_key, g.target
    from unnest(:ids::uuid[], :payloads::json[], :kinds::integer[], :groups::text[], :contexts::text[],
                :uniques::text[], :targets::text[]) as g(id, payload, kind, group_key, context, unique_key, target)
),
added as (
    insert into {schema}.jobs (id, chain, created_at, run_at, max_attempts, priority, rank, state, queue, task,
                               payload, lease, wait, target, group_key, policy, context, unique_key, watched)
    select g.id, g.id, {now}, {now}, (:max_attempts::integer[])[g.kind], (:priorities::smallint[])[g.kind],
           -(:priorities::smallint[])[g.kind],
           (case when g.target is null then 'queued' else 'pending' end)::{schema}.job_state,
           (:queues::text[])[g.kind], (:tasks::text[])[g.kind], g.payload, (:leases::float8[])[g.kind],
           case when g.target is not null then 'target' end, g.target,
           case when g.group_key is null
                 and (:queues::text[])[g.kind] = any(array(select q.queue from {schema}.queues q where q.by_group))
                then '' else g.group_key end,
           (:policies::text[])[g.kind]::json, g.context, g.unique_key, (:watched::boolean[])[g.kind]
    from given g
    where not (select exists (select from {schema}.finished f
                              where f.id between (select min(i.id::text)::uuid from given i)
                                             and (select max(i.id::text)::uuid from given i)))
       or not exists (select from {schema}.finished f where f.id = g.id)
),
nudged_groups as (
    insert into {schema}.group_nudges (queue, group_key)
    select distinct (:queues::text[])[g.kind], g.group_key from given g
    where g.group_key is not null and g.target is null
      and (:queues::text[])[g.kind] = any(array(select l.queue from {schema}.group_limits l))
),
nudged as (
    insert into {schema}.nudges (kind, key) select 'target', g.target from given g where g.target is not null
)
select date_part('epoch', {now}),
       (select sum(w.woken) = 0
        from {schema}.arming m cross join lateral (
            select {schema}.wake({now}, {queued_channel}, k.queue, k.task, k.number) as woken
            from (select (:queues::text[])[g.kind] as queue, (:tasks::text[])[g.kind] as task,
                         count(*)::integer as number
                  from given g where g.target is null group by 1, 2) k
            where m.single
            union all
            select {schema}.wake({now}, {jobs_channel}, null, null, 1) where m.single and :targets::text[] is not null
        ) w
        where m.armed_until > {now})
