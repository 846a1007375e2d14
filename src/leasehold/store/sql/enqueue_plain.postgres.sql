-- enqueue_plain: insert new jobs that wait for nothing, in order, and notify workers if one of them sleeps. What jobs of one
-- task share is sent once, as a kind, by whose number each job names it.
with added as (
    insert into {schema}.jobs (id, chain, created_at, run_at, max_attempts, priority, rank, state, queue, task, payload, lease, key,
                               policy, context, unique_key, watched)
    select g.id, g.id, {now}, {now}, (:max_attempts::integer[])[g.kind], (:priorities::smallint[])[g.kind],
           -(:priorities::smallint[])[g.kind], 'queued', (:queues::text[])[g.kind], (:tasks::text[])[g.kind], g.payload,
           (:leases::float8[])[g.kind],
           case when g.key is null and (:queues::text[])[g.kind] = any(array(select q.queue from {schema}.queues q where q.by_key))
                then '' else g.key end,
           (:policies::text[])[g.kind]::json, g.context, g.unique_key, (:watched::boolean[])[g.kind]
    from unnest(:ids::uuid[], :payloads::json[], :kinds::integer[], :keys::text[], :contexts::text[],
                :uniques::text[])
         as g(id, payload, kind, key, context, unique_key)
)
select date_part('epoch', {now}), (select count(pg_notify({channel}, '')) from {schema}.arming where armed_until > {now}) > 0
