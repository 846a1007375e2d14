-- How many jobs each queue had when a worker last counted, unless that is too long ago.
select queue, pending, queued, running, paused_jobs, failed, oldest, extract(epoch from counted_at)::float8
from {schema}.queue_samples
where counted_at > {now} - make_interval(secs => :within::float8)
