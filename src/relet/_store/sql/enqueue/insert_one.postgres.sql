-- Insert a new job without a group that waits for nothing, and notify workers if one of them sleeps.
with added as (
    insert into {schema}.jobs (id, chain, created_at, run_at, max_attempts, priority, rank, state, queue, task,
                               payload, lease, group_key, policy, context)
    values (:id::uuid, :id::uuid, {now}, {now}, :max_attempts::integer, :priority::smallint, -(:priority::smallint),
            'queued', :queue::text, :task::text, :payload::json, :lease::float8,
            (select '' from {schema}.queues q where q.queue = :queue::text and q.by_group),
            :policy::json, :context::text)
)
select date_part('epoch', {now}),
       (select count(pg_notify({queued_channel}, '')) from {schema}.arming where armed_until > {now}) > 0
