-- Insert a new job without a group that waits for nothing, and notify a worker if one sleeps. The client may have
-- repeated this statement, and the server may run the first one when the job is over: then it inserts nothing. Returns
-- whether workers sleep of which none could be notified: one may be in the client's process.
with added as (
    insert into {schema}.jobs (id, chain, created_at, run_at, max_attempts, priority, rank, state, queue, task,
                               payload, lease, group_key, policy, context)
    select :id::uuid, :id::uuid, {now}, {now}, :max_attempts::integer, :priority::smallint, -(:priority::smallint),
           'queued', :queue::text, :task::text, :payload::json, :lease::float8,
           (select '' from {schema}.queues q where q.queue = :queue::text and q.by_group),
           :policy::json, :context::text
    where not exists (select from {schema}.finished f where f.id = :id::uuid)
)
select date_part('epoch', {now}),
       (select {schema}.wake({now}, {queued_channel}, :queue::text, :task::text, 1) = 0
        from {schema}.arming where armed_until > {now})
