-- Store how many jobs each queue has, in place of the last sample.
insert into {schema}.queue_samples as s (queue, pending, queued, running, paused_jobs, failed, oldest, counted_at)
select queue, pending, queued, running, paused_jobs, failed, oldest, {now}
from json_to_recordset(:batch::text::json)
    as b(queue text, pending bigint, queued bigint, running bigint, paused_jobs bigint, failed bigint, oldest float8)
order by queue
on conflict (queue) do update
set pending = excluded.pending, queued = excluded.queued, running = excluded.running,
    paused_jobs = excluded.paused_jobs, failed = excluded.failed, oldest = excluded.oldest,
    counted_at = excluded.counted_at
