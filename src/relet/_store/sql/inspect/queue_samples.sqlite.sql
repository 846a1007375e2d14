-- How many jobs each queue had when a worker last counted, unless that is too long ago.
select queue, pending, queued, running, paused_jobs, failed, oldest, counted_at
from {schema}.queue_samples
where counted_at > {now} - :within;
