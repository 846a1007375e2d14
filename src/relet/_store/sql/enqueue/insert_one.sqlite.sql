-- Insert a new job without a group that waits for nothing.
insert into {schema}.jobs (id, seq, state, queue, task, priority, rank, group_key, payload, run_at, max_attempts,
                           policy, lease, chain, context, created_at)
values (:id, (select last from {schema}.sequence) + 1, 'queued', :queue, :task, :priority, -:priority,
        (select '' from {schema}.queues q where q.queue = :queue and q.by_group),
        :payload, {now}, :max_attempts, :policy, :lease, :id, :context, {now})
returning created_at, 1;

update {schema}.sequence set last = last + 1;
