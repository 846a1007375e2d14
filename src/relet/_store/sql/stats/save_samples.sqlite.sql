-- Store how many jobs each queue has, in place of the last sample.
insert or replace into {schema}.queue_samples (queue, pending, queued, running, paused_jobs, failed, oldest, counted_at)
select json_extract(value, '$.queue'), json_extract(value, '$.pending'), json_extract(value, '$.queued'),
       json_extract(value, '$.running'), json_extract(value, '$.paused_jobs'), json_extract(value, '$.failed'),
       json_extract(value, '$.oldest'), {now}
from json_each(:batch);
