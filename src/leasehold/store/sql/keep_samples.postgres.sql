-- keep_samples: how many jobs there are in each queue, in place of what was counted before.
with batch as materialized (
    select * from json_to_recordset(:batch::text::json)
        as b(queue text, pending bigint, queued bigint, running bigint, paused_jobs bigint, failed bigint, oldest float8)
),
gone as materialized (
    select queue from {schema}.queue_samples where queue not in (select queue from batch) order by queue for update
),
removed as (
    delete from {schema}.queue_samples where queue in (select queue from gone)
)
insert into {schema}.queue_samples as s (queue, pending, queued, running, paused_jobs, failed, oldest, counted_at)
select queue, pending, queued, running, paused_jobs, failed, oldest, {now} from batch order by queue
on conflict (queue) do update
set pending = excluded.pending, queued = excluded.queued, running = excluded.running, paused_jobs = excluded.paused_jobs,
    failed = excluded.failed, oldest = excluded.oldest, counted_at = excluded.counted_at
